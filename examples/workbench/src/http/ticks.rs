//! Deterministic mode: a plan is played to its end by the engine under paused time, and the page goes through it tick by
//! tick. The same plan always gives the same rows, so nothing has to be kept for a page.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::Workbench;
use super::control::Object;
use super::refusal::Refusal;
use crate::settings::Refused;
use crate::ticks::{Language, Plan, PlayError, Row, Scenario, play};

const LANGUAGES: [Language; 2] = [Language::English, Language::Korean];

/// The plans that have a name.
pub(super) async fn plans() -> Json<Value> {
    let plan = |scenario: &Scenario| {
        json!({
            "name": scenario.name(),
            "sentence": LANGUAGES.map(|language| scenario.sentence(language)),
            "plan": scenario.plan(),
        })
    };
    let plans: Vec<Value> = Scenario::ALL.iter().map(plan).collect();
    Json(json!({ "plans": plans }))
}

/// Plays the plan in the body.
pub(super) async fn played(
    State(app): State<Workbench>,
    Object(plan): Object,
) -> Result<Json<Value>, Refusal> {
    let plan = read(plan)?;
    let stage = app.ticks.clone().acquire_owned().await;
    let played = tokio::task::spawn_blocking(move || {
        let _stage = stage;
        play(plan.clone()).map(|rows| (plan, rows))
    });
    let failed = |error: String| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let played = played.await.map_err(|error| failed(error.to_string()))?;
    let (plan, rows) = played.map_err(|error| match error {
        PlayError::Plan(error) => {
            let range = error.range().map(|range| json!(range));
            Refused::new(error.field(), error.to_string(), range).into()
        }
        other => failed(other.to_string()),
    })?;
    let rows: Vec<Value> = rows.iter().map(told).collect();
    Ok(Json(
        json!({ "plan": plan, "candidates": plan.candidates(), "rows": rows }),
    ))
}

/// The plan, or which of its fields is none.
fn read(plan: Map<String, Value>) -> Result<Plan, Refused> {
    let whole = serde_json::from_value(Value::Object(plan.clone()));
    whole.map_err(|error| {
        // The error does not name it, but each field makes a plan of its own with all others as they are by default.
        let alone = |(field, value): (String, Value)| {
            let error = serde_json::from_value::<Plan>(json!({ &field: value })).err()?;
            Some(wrong(&field, &error))
        };
        let found = plan.into_iter().find_map(alone);
        found.unwrap_or_else(|| Refused::new("", error.to_string(), None))
    })
}

fn wrong(field: &str, error: &serde_json::Error) -> Refused {
    let known = json!(Plan::default());
    let fields: Vec<&String> = known.as_object().into_iter().flat_map(Map::keys).collect();
    let range = if fields.iter().any(|known| *known == field) {
        Plan::range_of(field).map(|range| json!(range))
    } else {
        Some(json!(fields))
    };
    let field: String = field.chars().take(40).collect();
    Refused::new(&field, format!("`{field}`: {error}"), range)
}

/// A row, with its words in each language.
fn told(row: &Row) -> Value {
    let mut told = json!(row);
    told["words"] = json!(LANGUAGES.map(|language| row.action.words(language)));
    told["result"] = json!(LANGUAGES.map(|language| row.result(language)));
    told
}
