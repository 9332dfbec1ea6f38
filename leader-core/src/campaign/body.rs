//! How the body of a campaign ends: [`BodyEnd`], and what return types can say it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// How the body of a campaign ended, when it ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BodyEnd {
    /// It returned, and what it returned is no error.
    Returned,
    /// It returned an error, which says this.
    Failed(Arc<str>),
    /// It panicked, with this message.
    Panicked(Arc<str>),
}

impl fmt::Display for BodyEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned => f.write_str("the body returned"),
            Self::Failed(error) => write!(f, "the body failed: {error}"),
            Self::Panicked(message) => write!(f, "the body panicked: {message}"),
        }
    }
}

/// What the body of a campaign may return: `()`, nothing at all (a `loop` that never ends), or a `Result` whose error
/// can be shown.
#[diagnostic::on_unimplemented(
    message = "the body of a campaign cannot return `{Self}`",
    note = "let it return `()`, or a `Result` whose error is `Display`; or implement `IntoBodyEnd` for `{Self}`"
)]
pub trait IntoBodyEnd {
    /// Whether this is a failure, and what it says.
    fn into_body_end(self) -> BodyEnd;
}

impl IntoBodyEnd for () {
    fn into_body_end(self) -> BodyEnd {
        BodyEnd::Returned
    }
}

impl IntoBodyEnd for BodyEnd {
    fn into_body_end(self) -> BodyEnd {
        self
    }
}

impl<T, E: fmt::Display> IntoBodyEnd for Result<T, E> {
    fn into_body_end(self) -> BodyEnd {
        match self {
            Ok(_) => BodyEnd::Returned,
            Err(error) => BodyEnd::Failed(error.to_string().into()),
        }
    }
}

impl IntoBodyEnd for Never {
    fn into_body_end(self) -> BodyEnd {
        self
    }
}

/// The type of what never returns, which has no name of its own yet.
type Never = <fn() -> ! as Returns>::Output;

/// Names what a function pointer returns.
#[doc(hidden)]
pub trait Returns {
    /// It.
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

/// What a panic said, as far as it said it in text.
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> BodyEnd {
    let message = if let Some(text) = panic.downcast_ref::<&str>() {
        Arc::from(*text)
    } else if let Some(text) = panic.downcast_ref::<String>() {
        Arc::from(text.as_str())
    } else {
        Arc::from("not said in text")
    };
    // What a body panics with may panic once more when it is dropped; and again.
    if let Err(another) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
    BodyEnd::Panicked(message)
}
