//! [`Management`]: who leads what, and handing over, behind a token.

use std::fmt;
use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::future::try_join_all;
use leader_core::{Campaign, Elector, ElectorExt, LeaderError, LockName};
use serde_json::{Value, json};

use crate::answer::{failure, refusal};
use crate::token::ManagementToken;

/// Routes for operators, all of them behind a [`ManagementToken`]:
///
/// | request | answer |
/// |---|---|
/// | `GET /leader-election` | who leads each of the names, and what this process does about it |
/// | `GET /leader-election/{name}` | the same of one name |
/// | `POST /leader-election/{name}/resign` | this process hands over, if it leads: its body ends, then its slot is free |
///
/// A name with a `/` is written `%2F`. Errors are JSON as well: `{"error", "message"}`, with 401 without a token, 403
/// with a wrong one, 404 for a name that is not among those given here, 405 for another method, 409 for resigning where
/// no campaign of this process stands, 503 when the store fails. Without the token nobody learns which names there are.
///
/// ```
/// use axum::Router;
/// use leader_axum::{Management, ManagementToken};
/// use leader_core::{Elector, LocalElector, LockName};
/// use std::sync::Arc;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let elector: Arc<dyn Elector> = Arc::new(LocalElector::new());
/// let mut app: Router = Router::new();
/// // Off, unless there is a token.
/// if let Ok(token) = std::env::var("MANAGEMENT_TOKEN") {
///     let management = Management::new(elector, ManagementToken::new(token)?)
///         .name(LockName::new("invoice-close")?)
///         .router();
///     app = app.nest("/management", management);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "routes are made by `router()`"]
pub struct Management {
    elector: Arc<dyn Elector>,
    token: ManagementToken,
    shown: Vec<Shown>,
}

/// A name that is shown.
struct Shown {
    name: LockName,
    campaign: Option<Arc<Campaign>>,
}

impl Management {
    /// No names yet.
    pub fn new(elector: Arc<dyn Elector>, token: ManagementToken) -> Self {
        Self {
            elector,
            token,
            shown: Vec::new(),
        }
    }

    /// Shows who leads `name`.
    pub fn name(self, name: LockName) -> Self {
        self.show(name, None)
    }

    /// Shows who leads `name`, for which `campaign` stands, and lets it resign.
    pub fn campaign(self, name: LockName, campaign: Arc<Campaign>) -> Self {
        self.show(name, Some(campaign))
    }

    fn show(mut self, name: LockName, campaign: Option<Arc<Campaign>>) -> Self {
        self.shown.retain(|shown| shown.name != name);
        self.shown.push(Shown { name, campaign });
        self
    }

    /// The routes, to be nested where they belong.
    pub fn router<S>(self) -> Router<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        let management = Arc::new(self);
        Router::new()
            .route("/leader-election", get(all))
            .route("/leader-election/{name}", get(one))
            .route("/leader-election/{name}/resign", post(resign))
            .method_not_allowed_fallback(async || {
                let message = "this route takes another method; see `Allow`";
                refusal(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "method_not_allowed",
                    message,
                )
            })
            .fallback(async || refusal(StatusCode::NOT_FOUND, "not_found", "no such route"))
            // Around everything above: whoever has no token does not learn what there is.
            .layer(middleware::from_fn_with_state(management.clone(), admit))
            .with_state(management)
    }

    fn find(&self, name: Named) -> Option<&Shown> {
        // A path that is no text is no name either.
        let Path(name) = name.ok()?;
        self.shown.iter().find(|shown| shown.name.as_str() == name)
    }

    async fn look(&self, shown: &Shown) -> Result<Value, LeaderError> {
        let state = self.elector.state(&shown.name).await?;
        let campaign = shown.campaign.as_ref().map(|campaign| {
            json!({
                "phase": campaign.status().phase().as_str(),
                "is_leader": campaign.is_leader(),
            })
        });
        Ok(json!({
            "name": state.name(),
            "holders": state.holders(),
            "campaign": campaign,
        }))
    }
}

impl fmt::Debug for Management {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.shown.iter().map(|shown| &shown.name);
        f.debug_struct("Management")
            .field("names", &names.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

type Managed = State<Arc<Management>>;
type Named = Result<Path<String>, PathRejection>;

async fn admit(State(management): Managed, request: Request, next: Next) -> Response {
    match management.token.refuses(request.headers()) {
        None => next.run(request).await,
        Some(refused) => refused,
    }
}

fn unknown_name() -> Response {
    let message = "this name is not among those that are shown here";
    refusal(StatusCode::NOT_FOUND, "unknown_name", message)
}

async fn all(State(management): Managed) -> Response {
    let looks = management.shown.iter().map(|shown| management.look(shown));
    match try_join_all(looks).await {
        Ok(elections) => Json(json!({
            "node_id": management.elector.node_id(),
            "elections": elections,
        }))
        .into_response(),
        Err(error) => failure(&error),
    }
}

async fn one(State(management): Managed, name: Named) -> Response {
    let Some(shown) = management.find(name) else {
        return unknown_name();
    };
    match management.look(shown).await {
        Ok(election) => Json(election).into_response(),
        Err(error) => failure(&error),
    }
}

async fn resign(State(management): Managed, name: Named) -> Response {
    let Some(shown) = management.find(name) else {
        return unknown_name();
    };
    let Some(campaign) = &shown.campaign else {
        let message = "no campaign of this process stands for this name";
        return refusal(StatusCode::CONFLICT, "no_campaign", message);
    };
    let led = campaign.lease();
    match campaign.resign().await {
        Ok(()) => Json(json!({
            "name": shown.name,
            "resigned": led.is_some(),
            "fence": led.map(|lease| lease.fence()),
        }))
        .into_response(),
        Err(error) => failure(&error),
    }
}
