//! The page: files of the binary, under exact paths.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::refusal::Refusal;

const INDEX: &str = include_str!("../../page/index.html");

/// Each file's path, its type, and what is in it.
macro_rules! files {
    ($($name:literal $kind:literal),* $(,)?) => {
        [$(($name, $kind, include_str!(concat!("../../page/", $name)))),*]
    };
}

const FILES: [(&str, &str, &str); 11] = files![
    "style.css" "text/css; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "app.js" "text/javascript; charset=utf-8",
    "chart.js" "text/javascript; charset=utf-8",
    "dom.js" "text/javascript; charset=utf-8",
    "live.js" "text/javascript; charset=utf-8",
    "scenarios.js" "text/javascript; charset=utf-8",
    "settings.js" "text/javascript; charset=utf-8",
    "spans.js" "text/javascript; charset=utf-8",
    "ticks.js" "text/javascript; charset=utf-8",
    "words.js" "text/javascript; charset=utf-8",
];

pub(super) async fn index() -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], INDEX).into_response()
}

pub(super) async fn file(path: Result<Path<String>, PathRejection>) -> Result<Response, Refusal> {
    let Path(path) = path?;
    Ok(match FILES.iter().find(|(name, ..)| *name == path) {
        Some((_, kind, text)) => ([(header::CONTENT_TYPE, *kind)], *text).into_response(),
        None => {
            Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this path").into_response()
        }
    })
}
