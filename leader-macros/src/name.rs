//! Names that are literals: their rules, and the parameters that they are filled in from.

use crate::suggest;
use syn::{Error, LitStr};

const MAX_LEN: usize = 255;

/// A name pattern, taken apart as `format!` does.
pub(crate) struct Pattern {
    /// The parameters that stand between braces, also as a width or precision.
    pub(crate) placeholders: Vec<String>,
}

/// Takes a literal apart and checks the rules of names as far as they can be seen.
pub(crate) fn parse(literal: &LitStr) -> Result<Pattern, Error> {
    let text = literal.value();
    let at_fault = |message: String| Err(Error::new(literal.span(), message));
    if text.is_empty() {
        return at_fault(
            "the name is empty; write 1 to 255 characters, `\"invoice-close\"` say".into(),
        );
    }
    let mut placeholders = Vec::new();
    let mut fixed = 0;
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        if c == '{' && !rest.starts_with("{{") {
            let Some((inside, after)) = rest[1..].split_once('}') else {
                return at_fault(
                    "a placeholder is not closed; write `{` parameter `}`, `\"report:{tenant}\"` say".into(),
                );
            };
            placeholders
                .extend(placeholder(inside).map_err(|why| Error::new(literal.span(), why))?);
            rest = after;
            continue;
        }
        if fixed == 0 && placeholders.is_empty() && !c.is_ascii_alphanumeric() {
            return at_fault(format!(
                "a name starts with an ASCII letter or digit, not with {c:?}"
            ));
        }
        if !c.is_ascii_alphanumeric() && !"_-.:/".contains(c) {
            return at_fault(format!(
                "{c:?} may not stand in a name; write ASCII letters, digits and `_ - . : /`"
            ));
        }
        fixed += 1;
        rest = &rest[c.len_utf8()..];
    }
    if fixed > MAX_LEN {
        return at_fault(format!(
            "the name is longer than 255 characters: it has {fixed}"
        ));
    }
    Ok(Pattern { placeholders })
}

/// The parameters that one placeholder takes, from what is between its braces.
fn placeholder(inside: &str) -> Result<Vec<String>, String> {
    let (argument, spec) = inside.split_once(':').unwrap_or((inside, ""));
    let argument = argument.trim();
    if argument.is_empty() || argument.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{{{inside}}}` does not say which parameter; write its name between the braces, `\"report:{{tenant}}\"` say"
        ));
    }
    if !is_identifier(argument) {
        return Err(format!(
            "`{{{inside}}}` is no parameter; for an expression write `name = format!(..)`"
        ));
    }
    let mut taken = vec![argument.to_owned()];
    // `{x:>width$.precision$}`
    for part in spec.split('$').rev().skip(1) {
        let start = part
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
            .map_or(0, |at| {
                at + part[at..].chars().next().map_or(1, char::len_utf8)
            });
        let width = part[start..].trim_start_matches('0');
        if is_identifier(width) {
            taken.push(width.to_owned());
        }
    }
    Ok(taken)
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_numeric())
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A placeholder that is no parameter.
pub(crate) struct Unknown {
    /// A parameter's name, nearly.
    pub(crate) is_slip: bool,
    pub(crate) advice: String,
}

/// The first placeholder that is no parameter.
pub(crate) fn unknown(pattern: &Pattern, parameters: &[String]) -> Option<Unknown> {
    let unknown = pattern
        .placeholders
        .iter()
        .find(|placeholder| !parameters.contains(placeholder))?;
    let known = parameters.iter().map(String::as_str);
    let meant = suggest::nearest(unknown, known.clone());
    let advice = match meant {
        Some(meant) => {
            format!("`{{{unknown}}}` is no parameter of this function; write `{{{meant}}}`")
        }
        None if parameters.is_empty() => format!(
            "`{{{unknown}}}` is no parameter: this function has none; for an expression write `name = format!(..)`"
        ),
        None => format!(
            "`{{{unknown}}}` is no parameter of this function, which has {}; for an expression write `name = format!(..)`",
            suggest::list(known)
        ),
    };
    Some(Unknown {
        // What is in capitals may be a constant, which `format!` would accept.
        is_slip: meant.is_some() && unknown.chars().any(char::is_lowercase),
        advice,
    })
}
