//! [`Patient`]: a listener whose connections end when their far end takes nothing for too long.
//!
//! Without it a page that reads nothing any more, on a machine that sleeps say, would hold its place for ever: nothing is
//! asked of a stream for which there is no room.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Sleep, sleep};

/// How long whoever is told something may take nothing of it.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Patient(pub(super) TcpListener);

impl Listener for Patient {
    type Io = Taken<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // The trait's own accept, which goes on after errors.
        let (stream, addr) = Listener::accept(&mut self.0).await;
        (Taken::from(stream), addr)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

/// A connection of which something has to be taken now and then, while there is something to take.
#[derive(Debug)]
pub(super) struct Taken<S> {
    stream: S,
    /// Runs while there is no room.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<S> From<S> for Taken<S> {
    fn from(stream: S) -> Self {
        Self {
            stream,
            stuck: None,
        }
    }
}

impl<S> Taken<S> {
    /// What was written, or the end of patience.
    fn patiently<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Taken<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Taken<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.patiently(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.patiently(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing is kept back here: what there is no room for, is seen by the next write.
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_for_a_minute_is_let_go() {
        let (near, _far) = duplex(16);
        let began = Instant::now();
        let written = timeout(PATIENCE * 2, Taken::from(near).write_all(&[0; 17])).await;
        let error = written.expect("it ends").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_is_not() {
        let (near, mut far) = duplex(16);
        let reading = tokio::spawn(async move {
            for _ in 0..10 {
                sleep(PATIENCE / 10 * 9).await;
                far.read_exact(&mut [0; 16]).await.unwrap();
            }
        });
        let mut near = Taken::from(near);
        near.write_all(&[0; 160]).await.unwrap();
        reading.await.unwrap();
    }
}
