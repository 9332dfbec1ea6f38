//! One client's connection through the proxy.

use super::lane::Lane;
use super::trap::{Parked, Spring};
use super::{Loss, Shared};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

const CHUNK: usize = 16 * 1024;

/// What the network is like at this moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    pub(super) mode: Mode,
    pub(super) hold_replies: bool,
    pub(super) request_delay: Duration,
    pub(super) reply_delay: Duration,
    /// Links with lower numbers are closed.
    pub(super) closed_before: u64,
    /// Links with lower numbers carry nothing any more.
    pub(super) stranded_before: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Open,
    Cut,
    Blackhole,
}

pub(super) struct Link {
    id: u64,
    client: TcpStream,
    server: TcpStream,
    rules: watch::Receiver<Rules>,
    shared: Arc<Shared>,
    requests: Lane,
    replies: Lane,
    requests_seen: u64,
    replies_seen: u64,
    /// The number of the request whose reply is to be lost.
    lose: Option<(u64, oneshot::Sender<()>)>,
    robbed: bool,
    client_done: bool,
    server_done: bool,
}

enum Event {
    FromClient(usize),
    FromServer(usize),
    /// The rules have changed, or something is due.
    Other,
}

/// Why a link ends.
enum End {
    Closed,
    Captured(Vec<u8>, oneshot::Sender<oneshot::Sender<super::trap::Told>>),
}

impl Link {
    pub(super) fn new(
        id: u64,
        client: TcpStream,
        server: TcpStream,
        rules: watch::Receiver<Rules>,
        shared: Arc<Shared>,
    ) -> Self {
        // Delay is the proxy's to choose, not Nagle's; a failure only makes it slower.
        let _ = client
            .set_nodelay(true)
            .and_then(|()| server.set_nodelay(true));
        Self {
            id,
            client,
            server,
            rules,
            shared,
            requests: Lane::default(),
            replies: Lane::default(),
            requests_seen: 0,
            replies_seen: 0,
            lose: None,
            robbed: false,
            client_done: false,
            server_done: false,
        }
    }

    /// Carries bytes until one side closes or the rules say so. Gives the request that was captured, if one was.
    pub(super) async fn run(mut self) -> Option<Parked> {
        let mut rules = self.rules.clone();
        let id = self.id;
        let end = tokio::select! {
            // Also while a write is stuck.
            _ = rules.wait_for(|rules| id < rules.closed_before) => End::Closed,
            end = self.carry() => end,
        };
        self.shared
            .held
            .fetch_sub(self.replies.len(), Ordering::SeqCst);
        match end {
            End::Closed => None,
            End::Captured(request, caught) => Some(Parked {
                server: self.server,
                request,
                caught,
            }),
        }
    }

    async fn carry(&mut self) -> End {
        let (mut from_client, mut from_server) = (vec![0; CHUNK], vec![0; CHUNK]);
        loop {
            let rules = self.rules.borrow_and_update().clone();
            if let Some(end) = self.settle(&rules).await {
                return end;
            }
            let event = self
                .next_event(&rules, &mut from_client, &mut from_server)
                .await;
            // Anew: what was sent after a change of the rules is treated by the changed ones.
            let rules = self.rules.borrow().clone();
            let end = match event {
                Event::FromClient(1..) | Event::FromServer(1..) if self.is_swallowed(&rules) => {
                    self.rob();
                    None
                }
                Event::FromClient(0) => {
                    self.client_done = true;
                    None
                }
                Event::FromServer(0) => {
                    self.server_done = true;
                    None
                }
                Event::FromClient(n) => self.take_requests(&from_client[..n], &rules).await,
                Event::FromServer(n) => self.take_replies(&from_server[..n], &rules).await,
                Event::Other => None,
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    fn is_swallowed(&self, rules: &Rules) -> bool {
        rules.mode == Mode::Blackhole || self.id < rules.stranded_before
    }

    /// Writes what the rules let through. `Some` when the link is over.
    async fn settle(&mut self, rules: &Rules) -> Option<End> {
        let swallowed = self.is_swallowed(rules);
        let mended = self.robbed && !swallowed;
        if mended
            || (!swallowed && self.write_due(rules).await.is_none())
            || self.is_over(swallowed)
        {
            return Some(End::Closed);
        }
        None
    }

    async fn next_event(
        &mut self,
        rules: &Rules,
        from_client: &mut [u8],
        from_server: &mut [u8],
    ) -> Event {
        let swallowed = self.is_swallowed(rules);
        let replies_due = self.replies.next_due().filter(|_| !rules.hold_replies);
        let due = self
            .requests
            .next_due()
            .into_iter()
            .chain(replies_due)
            .min();
        let due = due.filter(|_| !swallowed);
        // A reset connection has ended like one that was closed.
        tokio::select! {
            _ = self.rules.changed() => Event::Other,
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => Event::Other,
            read = self.client.read(from_client), if !self.client_done => Event::FromClient(read.unwrap_or(0)),
            read = self.server.read(from_server), if !self.server_done => Event::FromServer(read.unwrap_or(0)),
        }
    }

    /// The one side learns that the other has closed when it has got everything. Nobody learns it through a black
    /// hole, but where the client has closed there, nobody is left to learn anything.
    fn is_over(&self, swallowed: bool) -> bool {
        let client_over = self.client_done && (swallowed || self.requests.is_empty());
        let server_over = self.server_done && !swallowed && self.replies.is_empty();
        client_over || server_over
    }

    async fn take_requests(&mut self, read: &[u8], rules: &Rules) -> Option<End> {
        for frame in self.requests.frames(read) {
            self.requests_seen += 1;
            match self.shared.traps.sprung_by(&frame) {
                Some(Spring::LoseReply(sender)) => self.lose = Some((self.requests_seen, sender)),
                Some(Spring::Capture(sender)) => {
                    while let Some(earlier) = self.requests.pop() {
                        self.server.write_all(&earlier).await.ok()?;
                    }
                    return Some(End::Captured(frame, sender));
                }
                None => {}
            }
            self.requests.push(frame, rules.request_delay);
        }
        None
    }

    async fn take_replies(&mut self, read: &[u8], rules: &Rules) -> Option<End> {
        for frame in self.replies.frames(read) {
            // A push message of RESP3 answers nothing.
            self.replies_seen += u64::from(frame.first() != Some(&b'>'));
            if let Some((_, lost)) = self
                .lose
                .take_if(|(number, _)| *number == self.replies_seen)
            {
                if !rules.hold_replies {
                    self.write_replies(Lane::pop).await?;
                }
                let _ = lost.send(());
                return Some(End::Closed);
            }
            self.replies.push(frame, rules.reply_delay);
            self.shared.held.fetch_add(1, Ordering::SeqCst);
        }
        None
    }

    /// Writes what is due. `None` when a side does not take it any more.
    async fn write_due(&mut self, rules: &Rules) -> Option<()> {
        while let Some(frame) = self.requests.pop_due() {
            self.server.write_all(&frame).await.ok()?;
        }
        if !rules.hold_replies {
            self.write_replies(Lane::pop_due).await?;
        }
        Some(())
    }

    async fn write_replies(&mut self, pop: fn(&mut Lane) -> Option<Vec<u8>>) -> Option<()> {
        while let Some(frame) = pop(&mut self.replies) {
            self.shared.held.fetch_sub(1, Ordering::SeqCst);
            self.client.write_all(&frame).await.ok()?;
        }
        Some(())
    }

    fn rob(&mut self) {
        if !self.robbed {
            self.robbed = true;
            self.shared
                .links
                .send_modify(|links| _ = links.insert(self.id, Loss::Bytes));
        }
    }
}
