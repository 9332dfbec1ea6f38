use futures::Stream;
use futures::future::BoxFuture;
use leader_core::{LeaderError, LocalElector, leader_election};

struct Service {
    elector: LocalElector,
    rate: u8,
}

impl Service {
    #[leader_election(name = "x", elector = self.elector)]
    fn future(&mut self) -> BoxFuture<'static, Result<Option<u8>, LeaderError>> {
        self.rate += 1;
        let rate = self.rate;
        Box::pin(async move { Ok(Some(rate)) })
    }

    #[leader_election(name = "x", elector = self.elector, auto_extend)]
    fn stream(&self) -> impl Stream<Item = u8> + use<> {
        futures::stream::iter([self.rate])
    }

    #[leader_election(name = "x", elector = self.elector)]
    fn named<'s>(&'s self) -> BoxFuture<'static, Result<Option<u8>, LeaderError>> {
        let rate = self.rate;
        Box::pin(async move { Ok(Some(rate)) })
    }
}

fn main() {
    let mut service = Service { elector: LocalElector::new(), rate: 0 };
    drop(service.future());
    drop(service.stream());
    drop(service.named());
}
