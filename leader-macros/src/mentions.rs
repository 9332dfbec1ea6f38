//! Whether code that is not parsed uses a variable.

use proc_macro2::{Delimiter, Ident, Punct, Spacing, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;

/// Where the code uses the variable first, be it within a literal that `format!` may read. A field, a method, a path, a
/// label or a lifetime of the same name does not count, nor does what stands in an item of its own.
pub(crate) fn mentions(code: TokenStream, variable: &Ident) -> Option<Span> {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let found = match &tokens[at] {
            TokenTree::Ident(ident) if is_item(ident) => {
                at += body_of_item(&tokens[at..]);
                None
            }
            TokenTree::Ident(ident) if ident == variable && !is_elsewhere(&tokens, at) => {
                Some(ident.span())
            }
            TokenTree::Group(group) => mentions(group.stream(), variable),
            TokenTree::Literal(literal) => {
                let name = variable.unraw().to_string();
                has_placeholder(&literal.to_string(), &name).then(|| literal.span())
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        at += 1;
    }
    None
}

/// Whether the code has this word anywhere.
pub(crate) fn names(code: TokenStream, word: &str) -> bool {
    code.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => names(group.stream(), word),
        _ => false,
    })
}

/// What begins an item in which the variables around it are not seen, `self` least of all.
fn is_item(ident: &Ident) -> bool {
    ident == "impl" || ident == "trait" || ident == "mod"
}

/// How many tokens it is from the beginning of an item to its body; none if it has no body, and so is no item.
fn body_of_item(tokens: &[TokenTree]) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => matches!(punct.as_char(), ';' | '=' | ','),
        _ => false,
    };
    match tokens.iter().position(ends) {
        Some(at) if matches!(tokens[at], TokenTree::Group(_)) => at,
        _ => 0,
    }
}

/// Whether the name at this place is that of a field or method (`.name`), a part of a path (`name::`, `::name`), or a
/// label (`name: value`).
fn is_elsewhere(tokens: &[TokenTree], at: usize) -> bool {
    let punct = |at: Option<usize>| match at.and_then(|at| tokens.get(at)) {
        Some(TokenTree::Punct(punct)) => Some(punct),
        _ => None,
    };
    let is = |punct: Option<&Punct>, c: char| punct.is_some_and(|punct| punct.as_char() == c);
    let (before, earlier) = (punct(at.checked_sub(1)), punct(at.checked_sub(2)));
    let joins =
        |c| is(earlier, c) && earlier.is_some_and(|earlier| earlier.spacing() == Spacing::Joint);
    let is_member = is(before, '.') && !joins('.');
    let is_in_path = is(before, ':') && joins(':');
    let is_lifetime = is(before, '\'');
    // `name:` and `name::`.
    is_member || is_in_path || is_lifetime || is(punct(Some(at + 1)), ':')
}

/// Whether `{name}` stands in it, with whatever format.
fn has_placeholder(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let after = |start: &str| {
        text.split(start)
            .skip(1)
            .any(|rest| !rest.starts_with(is_part))
    };
    let is_argument = after(&format!("{{{name}"));
    // `{x:>name$}`
    let is_width = || text.contains('{') && text.contains(&format!("{name}$"));
    is_argument || is_width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_used(code: &str) -> bool {
        let region = Ident::new("region", Span::call_site());
        mentions(code.parse().unwrap(), &region).is_some()
    }

    #[test]
    fn a_use_is_told_from_what_has_the_same_name() {
        for used in [
            "region.len()",
            "f(region)",
            "..region",
            "0..=region",
            "Point { x, ..region }",
            "format!(\"{region}\")",
            "format!(\"{region:>4}\")",
            "format!(\"{x:>region$}\")",
            "a.b(|x| x + region)",
            "json!({ \"region\": region })",
            "let x: impl Fn() = f; { region }",
        ] {
            assert!(is_used(used), "{used}");
        }
        for unused in [
            "self.region",
            "let x: &'region str = y;",
            "self.a.region()",
            "region::f()",
            "self::region()",
            "Point { region: x }",
            "format!(\"{regions}\")",
            "format!(\"region\")",
            "impl X { fn f(region: u8) -> u8 { region } }",
        ] {
            assert!(!is_used(unused), "{unused}");
        }
    }
}
