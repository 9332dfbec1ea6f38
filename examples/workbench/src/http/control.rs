//! What can be asked of the bench: settings, candidates, the store. Each request is an object, and is checked in full.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::Workbench;
use super::refusal::Refusal;
use crate::bench::{Deed, StoreDeed};
use crate::script::Script;
use crate::settings::Refused;
use crate::world::IDS;

/// A request's body: a JSON object.
pub(super) struct Object(pub(super) Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for Object {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes
            .map_err(|error: BytesRejection| Refusal::new(error.status(), error.body_text()))?;
        let malformed = |error: String| Refusal::new(StatusCode::BAD_REQUEST, error);
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(object)) => Ok(Self(object)),
            Ok(_) => Err(malformed("the body must be a JSON object".to_owned())),
            Err(error) => Err(malformed(format!("the body is not JSON: {error}"))),
        }
    }
}

impl Object {
    /// Refuses fields that nobody asks for.
    fn only(&self, fields: &[&str]) -> Result<(), Refused> {
        match self
            .0
            .keys()
            .find(|field| !fields.contains(&field.as_str()))
        {
            None => Ok(()),
            Some(field) => {
                let field: String = field.chars().take(40).collect();
                let error = "there is no such field";
                Err(Refused::new(&field, error, Some(json!(fields))))
            }
        }
    }

    /// The field's value, which must be one of these words.
    fn word<T: Copy>(&self, field: &str, words: &[(&str, T)]) -> Result<T, Refused> {
        let given = self.0.get(field).and_then(Value::as_str);
        let found = words.iter().find(|(word, _)| Some(*word) == given);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let error = format!("`{field}` must be one of {}", known.join(", "));
            Refused::new(field, error, Some(json!(known)))
        })
    }
}

type Answer = Result<Json<Value>, Refusal>;

fn done() -> Json<Value> {
    Json(json!({ "done": true }))
}

pub(super) async fn settings(State(app): State<Workbench>, Object(changes): Object) -> Answer {
    let settings = app.bench.set(&changes).await?;
    Ok(Json(settings.shown()))
}

pub(super) async fn candidate(
    State(app): State<Workbench>,
    id: Result<Path<String>, PathRejection>,
    body: Object,
) -> Answer {
    let Path(id) = id?;
    let id = IDS.iter().find(|known| **known == id);
    let id = id.ok_or_else(|| {
        let error = format!("there is no such candidate; there are {}", IDS.join(", "));
        Refusal::new(StatusCode::NOT_FOUND, error)
    })?;
    body.only(&["action"])?;
    let deeds = [
        ("start", Deed::Start),
        ("stop", Deed::Stop),
        ("freeze", Deed::Freeze),
        ("thaw", Deed::Thaw),
        ("kill", Deed::Kill),
        ("cut", Deed::Cut),
        ("mend", Deed::Mend),
    ];
    let deed = body.word("action", &deeds)?;
    app.bench
        .candidate(id, deed)
        .await
        .map_err(Refusal::conflict)?;
    Ok(done())
}

pub(super) async fn store(State(app): State<Workbench>, body: Object) -> Answer {
    body.only(&["action", "node"])?;
    let deeds = [
        ("stop", StoreDeed::Stop),
        ("start", StoreDeed::Start),
        ("forget", StoreDeed::Forget),
    ];
    let deed = body.word("action", &deeds)?;
    let nodes = app.bench.world.site().nodes.len();
    let node = match body.0.get("node") {
        None | Some(Value::Null) => None,
        Some(node) => {
            let node = node.as_u64().and_then(|node| usize::try_from(node).ok());
            let node = node.filter(|node| *node < nodes);
            Some(node.ok_or_else(|| {
                let last = nodes - 1;
                let error = format!("`node` must be a whole number from 0 to {last}");
                Refused::new("node", error, Some(json!([0, last])))
            })?)
        }
    };
    app.bench
        .store(node, deed)
        .await
        .map_err(Refusal::conflict)?;
    Ok(done())
}

/// Plays a scenario from its beginning, or ends the one that plays.
pub(super) async fn scenario(State(app): State<Workbench>, body: Object) -> Answer {
    body.only(&["name"])?;
    if body.0.get("name") == Some(&Value::Null) {
        return reset_all(&app).await;
    }
    let scripts = Script::ALL.map(|script| (script.name(), script));
    let script = body.word("name", &scripts)?;
    app.stage
        .play(&app.bench, script)
        .await
        .map_err(Refusal::conflict)?;
    Ok(done())
}

/// Nobody runs, the store is empty, the settings are the first ones.
pub(super) async fn reset(State(app): State<Workbench>, body: Object) -> Answer {
    body.only(&[])?;
    reset_all(&app).await
}

async fn reset_all(app: &Workbench) -> Answer {
    let reset = app.stage.reset(&app.bench).await;
    reset.map_err(Refusal::conflict)?;
    Ok(done())
}
