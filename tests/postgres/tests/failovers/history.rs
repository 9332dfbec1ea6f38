//! What the database itself remembers of the row: each of its versions, in the order in which they came.

use sqlx::PgPool;

pub(crate) struct History {
    pool: PgPool,
}

impl History {
    pub(crate) async fn record(url: &str) -> Self {
        let pool = PgPool::connect(url).await.expect("the database answers");
        // The row is locked while the trigger runs, so numbers are given in the order of the row's versions.
        for statement in [
            "CREATE TABLE history (number BIGSERIAL PRIMARY KEY, fence BIGINT NOT NULL)",
            "CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN INSERT INTO history (fence) VALUES (NEW.fence); RETURN NEW; END $$",
            "CREATE TRIGGER remember AFTER UPDATE ON accounts FOR EACH ROW EXECUTE FUNCTION remember()",
        ] {
            let done = sqlx::query(statement).execute(&pool).await;
            done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        Self { pool }
    }

    /// The row's token never got lower, and there is a version for each write that was made.
    pub(crate) async fn never_goes_back(self, writes: usize) {
        let (versions, steps_back): (i64, i64) = sqlx::query_as(
            "SELECT count(*), count(*) FILTER (WHERE fence < before)
             FROM (SELECT fence, lag(fence) OVER (ORDER BY number) AS before FROM history) AS versions",
        )
        .fetch_one(&self.pool)
        .await
        .expect("the database answers");
        assert_eq!(steps_back, 0, "the row went back {steps_back} times");
        assert_eq!(usize::try_from(versions), Ok(writes));
    }
}
