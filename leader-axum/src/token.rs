//! [`ManagementToken`]: what a request to a management route must carry.

use std::fmt;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::answer::refusal;

/// The secret that opens the management routes: a request carries it as `Authorization: Bearer ...`.
///
/// It is compared in constant time, and `Debug` hides it.
///
/// ```
/// use leader_axum::ManagementToken;
///
/// assert!(ManagementToken::new("").is_err());
/// let token = ManagementToken::new("8f2c0b6e4a91d7c3")?;
/// assert_eq!(format!("{token:?}"), "ManagementToken(..)");
/// # Ok::<(), leader_axum::WeakToken>(())
/// ```
#[derive(Clone)]
pub struct ManagementToken(String);

/// A token that could be guessed was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WeakToken;

impl fmt::Display for WeakToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a management token has {} characters at least, all of them visible ASCII",
            ManagementToken::MIN_LEN
        )
    }
}

impl std::error::Error for WeakToken {}

impl ManagementToken {
    /// The shortest token, in characters.
    pub const MIN_LEN: usize = 16;

    /// Takes `token` as the secret.
    ///
    /// # Errors
    ///
    /// [`WeakToken`]: it is shorter than 16 characters, an unset variable say, or has others than visible ASCII.
    pub fn new(token: impl Into<String>) -> Result<Self, WeakToken> {
        let token = token.into();
        let visible = token.bytes().all(|byte| byte.is_ascii_graphic());
        if visible && token.len() >= Self::MIN_LEN {
            Ok(Self(token))
        } else {
            Err(WeakToken)
        }
    }

    /// What a request is told that may not go on.
    pub(crate) fn refuses(&self, headers: &HeaderMap) -> Option<Response> {
        let presented = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.as_bytes().split_once_at_space())
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer"))
            .map(|(_, token)| token);
        match presented {
            None => {
                let answer = refusal(
                    StatusCode::UNAUTHORIZED,
                    "unauthorized",
                    "send the management token as `Authorization: Bearer ...`",
                );
                Some(([(header::WWW_AUTHENTICATE, "Bearer")], answer).into_response())
            }
            Some(token) if bool::from(token.ct_eq(self.0.as_bytes())) => None,
            Some(_) => Some(refusal(
                StatusCode::FORBIDDEN,
                "forbidden",
                "this is not the management token",
            )),
        }
    }
}

impl fmt::Debug for ManagementToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ManagementToken(..)")
    }
}

trait SplitAtSpace {
    fn split_once_at_space(&self) -> Option<(&[u8], &[u8])>;
}

impl SplitAtSpace for [u8] {
    fn split_once_at_space(&self) -> Option<(&[u8], &[u8])> {
        let space = self.iter().position(|byte| *byte == b' ')?;
        Some((&self[..space], self[space..].trim_ascii()))
    }
}
