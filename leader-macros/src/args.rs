//! The keys in the attribute's parentheses, each checked by itself.

use std::time::Duration;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Expr, ExprLit, Ident, Lit, LitStr, Path, Token, UnOp};

use crate::name::{self, Pattern};
use crate::shape::Kind;
use crate::{duration, suggest};

pub(crate) const KEYS: [&str; 15] = [
    "name",
    "wait",
    "lease",
    "min_lease",
    "max_tenure",
    "auto_extend",
    "bounded",
    "slots",
    "on_lost",
    "on_error",
    "skipped",
    "elector",
    "options",
    "kind",
    "crate",
];

/// What the attribute says, as far as it could be understood.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) name: Option<Name>,
    pub(crate) wait: Option<Time>,
    pub(crate) lease: Option<Time>,
    pub(crate) min_lease: Option<Time>,
    pub(crate) max_tenure: Option<Time>,
    pub(crate) auto_extend: Option<Expr>,
    pub(crate) bounded: Option<(bool, Span)>,
    pub(crate) slots: Option<Slots>,
    pub(crate) on_lost: Option<OnLost>,
    pub(crate) on_error: Option<OnError>,
    pub(crate) skipped: Option<Expr>,
    pub(crate) elector: Option<Expr>,
    pub(crate) options: Option<Expr>,
    pub(crate) kind: Option<(Kind, Span)>,
    pub(crate) krate: Option<Path>,
    /// The keys as written, in their order.
    pub(crate) keys: Vec<Ident>,
    /// The keys that are not there, but were meant by something that is.
    meant: Vec<&'static str>,
}

pub(crate) enum Name {
    Literal(LitStr, Pattern),
    Expr(Expr),
}

pub(crate) enum Time {
    Literal(Duration, Span),
    Expr(Expr),
}

pub(crate) enum Slots {
    Literal(u32),
    Expr(Expr),
}

pub(crate) enum OnLost {
    Cancel,
    Notify,
    Expr(Expr),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    Return,
    Skip,
    Run,
}

/// All that was found wrong, for one report.
#[derive(Default)]
pub(crate) struct Mistakes(Option<Error>);

impl Mistakes {
    pub(crate) fn push(&mut self, mistake: Error) {
        match &mut self.0 {
            Some(earlier) => earlier.combine(mistake),
            None => self.0 = Some(mistake),
        }
    }

    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(Error::new(span, message));
    }

    pub(crate) fn into_error(self) -> Option<Error> {
        self.0
    }
}

/// Reads the keys. A key that is wrong is reported and left out, and reading goes on behind it.
pub(crate) fn parse(tokens: TokenStream, mistakes: &mut Mistakes) -> Args {
    let mut args = Args::default();
    let read = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if let Err(mistake) = args.read_key(input) {
                mistakes.push(mistake);
            }
            if input.is_empty() || input.parse::<Option<Token![,]>>()?.is_some() {
                continue;
            }
            mistakes.push(input.error("a comma is missing in front of this"));
            // What may be the next key is read as such.
            if !input.peek(Ident::peek_any) {
                skip_to_comma(input);
                input.parse::<Option<Token![,]>>()?;
            }
        }
        Ok(())
    };
    if let Err(mistake) = read.parse2(tokens) {
        mistakes.push(mistake);
    }
    args
}

fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        // Cannot fail: there is a token.
        let _ = input.parse::<TokenTree>();
    }
}

impl Args {
    /// Whether the key is there, or was meant to be, with a value that can be read or not. Then it is not missing as
    /// well.
    pub(crate) fn attempted(&self, key: &str) -> bool {
        self.keys.iter().any(|written| written == key) || self.meant.contains(&key)
    }

    fn read_key(&mut self, input: ParseStream<'_>) -> Result<(), Error> {
        if input.peek(LitStr) {
            let literal: LitStr = input.parse()?;
            self.meant.push("name");
            return Err(Error::new(
                literal.span(),
                format!(
                    "a value without its key; write `name = {}`",
                    quote::quote!(#literal)
                ),
            ));
        }
        let key = input.call(Ident::parse_any).map_err(|error| {
            skip_to_comma(input);
            Error::new(error.span(), "write `key = value` here")
        })?;
        let word = key.to_string();
        let is_known = KEYS.contains(&word.as_str());
        let equals = input.parse::<Option<Token![=]>>()?;
        let value = equals.map(|_| input.parse::<Expr>());
        if matches!(value, Some(Err(_))) || (value.is_none() && !is_known) {
            skip_to_comma(input);
        }
        if !is_known {
            let meant = suggest::nearest(&word, KEYS);
            self.meant.extend(meant);
            let advice = match meant {
                Some(meant) => format!("write `{meant}`"),
                None => format!("the keys are {}", suggest::list(KEYS)),
            };
            return Err(Error::new(
                key.span(),
                format!("there is no key `{word}`; {advice}"),
            ));
        }
        if self.keys.contains(&key) {
            return Err(Error::new(
                key.span(),
                format!("`{word}` is here twice; keep one"),
            ));
        }
        self.keys.push(key.clone());
        let value = value.transpose().map_err(|error| {
            Error::new(
                error.span(),
                format!("a value for `{word}` should stand here"),
            )
        })?;
        self.take(&key, value)
    }

    fn take(&mut self, key: &Ident, value: Option<Expr>) -> Result<(), Error> {
        let word = key.to_string();
        match (word.as_str(), value) {
            ("auto_extend", None) => self.auto_extend = Some(flag(key)),
            ("bounded", None) => self.bounded = Some((true, key.span())),
            (_, None) => {
                return Err(Error::new(
                    key.span(),
                    format!(
                        "`{word}` needs a value; write `{word} = {}`",
                        example(&word)
                    ),
                ));
            }
            ("name", Some(value)) => self.name = Some(name(value)?),
            ("wait", Some(value)) => self.wait = Some(time(value)?),
            ("lease", Some(value)) => self.lease = Some(time(value)?),
            ("min_lease", Some(value)) => self.min_lease = Some(time(value)?),
            ("max_tenure", Some(value)) => self.max_tenure = Some(time(value)?),
            ("auto_extend", Some(value)) => self.auto_extend = Some(extend(value)?),
            ("bounded", Some(value)) => self.bounded = Some((bounded(&value)?, key.span())),
            ("slots", Some(value)) => self.slots = Some(slots(value)?),
            ("on_lost", Some(value)) => self.on_lost = Some(on_lost(value)?),
            ("on_error", Some(value)) => self.on_error = Some(on_error(&value)?),
            ("skipped", Some(value)) => self.skipped = Some(value),
            ("elector", Some(value)) => {
                self.elector = Some(expression(key, value, "is no elector")?);
            }
            ("options", Some(value)) => {
                self.options = Some(expression(key, value, "is no `LeaseOptions`")?);
            }
            ("kind", Some(value)) => {
                self.kind = Some((kind(&value)?, syn::spanned::Spanned::span(&value)));
            }
            (_, Some(value)) => self.krate = Some(krate(value)?),
        }
        Ok(())
    }
}

/// A value to show for a key that came without one.
fn example(key: &str) -> &'static str {
    match key {
        "name" => "\"invoice-close\"",
        "slots" => "3",
        "on_lost" => "\"notify\"",
        "on_error" => "\"skip\"",
        "skipped" => "<expression>",
        "elector" => "self.elector",
        "options" => "&self.options",
        "kind" => "\"future\"",
        "crate" => "\"leader_core\"",
        _ => "\"10s\"",
    }
}

fn flag(key: &Ident) -> Expr {
    let value = syn::LitBool::new(true, key.span());
    syn::parse_quote!(#value)
}

/// The literal that an expression is, also when a `macro_rules` macro has handed it on.
pub(crate) fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

/// What is no literal, whatever it is.
fn expression(key: &Ident, value: Expr, is_none: &str) -> Result<Expr, Error> {
    let advice = example(&key.to_string());
    match literal(&value) {
        Some(literal) => Err(Error::new(
            literal.span(),
            format!("a literal {is_none}; write where it is: `{key} = {advice}`, say"),
        )),
        None => Ok(value),
    }
}

fn name(value: Expr) -> Result<Name, Error> {
    match literal(&value) {
        Some(Lit::Str(text)) => Ok(Name::Literal(text.clone(), name::parse(text)?)),
        Some(other) => Err(Error::new(
            other.span(),
            "a name is text; write `name = \"invoice-close\"`, say",
        )),
        None => Ok(Name::Expr(value)),
    }
}

fn time(value: Expr) -> Result<Time, Error> {
    match literal(&value) {
        Some(Lit::Str(text)) => match duration::parse(&text.value()) {
            Ok(time) => Ok(Time::Literal(time, text.span())),
            Err(advice) => Err(Error::new(text.span(), advice)),
        },
        Some(Lit::Int(number)) if number.suffix().is_empty() => Err(Error::new(
            number.span(),
            format!("a duration has a unit; write `\"{number}s\"` or `\"{number}ms\"`"),
        )),
        Some(other) => Err(Error::new(
            other.span(),
            "a duration is text with a unit; write `\"10s\"`, say, or an expression of type `Duration`",
        )),
        None => Ok(Time::Expr(value)),
    }
}

fn extend(value: Expr) -> Result<Expr, Error> {
    match literal(&value) {
        None | Some(Lit::Bool(_)) => Ok(value),
        Some(other) => Err(Error::new(
            other.span(),
            "write `auto_extend`, or `auto_extend = ` and a `bool`",
        )),
    }
}

fn bounded(value: &Expr) -> Result<bool, Error> {
    match literal(value) {
        Some(Lit::Bool(flag)) => Ok(flag.value),
        _ => Err(Error::new_spanned(value, "write `bounded` without a value")),
    }
}

fn slots(value: Expr) -> Result<Slots, Error> {
    let minus = match &value {
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && literal(&unary.expr).is_some(),
        _ => false,
    };
    if minus {
        return Err(Error::new_spanned(
            value,
            "a name has at least one slot; write `slots = 1`",
        ));
    }
    match literal(&value) {
        Some(Lit::Int(number)) => match number.base10_parse::<u32>() {
            Ok(0) => Err(Error::new(
                number.span(),
                "with no slots nobody can ever lead; write `slots = 1` or more",
            )),
            Ok(slots @ 1..=1024) => Ok(Slots::Literal(slots)),
            _ => Err(Error::new(
                number.span(),
                "a name has 1024 slots at most; write a smaller number",
            )),
        },
        Some(other) => Err(Error::new(
            other.span(),
            "slots are counted; write `slots = 3`, say",
        )),
        None => Ok(Slots::Expr(value)),
    }
}

fn on_lost(value: Expr) -> Result<OnLost, Error> {
    match literal(&value) {
        Some(Lit::Str(text)) => one_of(
            text,
            [("cancel", OnLost::Cancel), ("notify", OnLost::Notify)],
        ),
        Some(other) => Err(Error::new(
            other.span(),
            "write `on_lost = \"cancel\"` or `on_lost = \"notify\"`",
        )),
        None => Ok(OnLost::Expr(value)),
    }
}

fn on_error(value: &Expr) -> Result<OnError, Error> {
    match literal(value) {
        Some(Lit::Str(text)) => one_of(
            text,
            [
                ("return", OnError::Return),
                ("skip", OnError::Skip),
                ("run", OnError::Run),
            ],
        ),
        _ => Err(Error::new_spanned(
            value,
            "write `on_error = \"return\"`, `\"skip\"` or `\"run\"`",
        )),
    }
}

fn kind(value: &Expr) -> Result<Kind, Error> {
    match literal(value) {
        Some(Lit::Str(text)) => one_of(text, [("future", Kind::Future), ("stream", Kind::Stream)]),
        _ => Err(Error::new_spanned(
            value,
            "write `kind = \"future\"` or `kind = \"stream\"`",
        )),
    }
}

fn one_of<T, const N: usize>(text: &LitStr, choices: [(&str, T); N]) -> Result<T, Error> {
    let said = text.value();
    let words: Vec<String> = choices
        .iter()
        .map(|(word, _)| format!("\"{word}\""))
        .collect();
    let words = words.iter().map(String::as_str);
    let advice = match suggest::nearest(&format!("\"{said}\""), words.clone()) {
        Some(meant) => format!("write `{meant}`"),
        None => format!("write one of {}", suggest::list(words)),
    };
    let mut choices = choices.into_iter();
    match choices.find(|(word, _)| *word == said) {
        Some((_, choice)) => Ok(choice),
        None => Err(Error::new(
            text.span(),
            format!("`\"{said}\"` is no choice here; {advice}"),
        )),
    }
}

fn krate(value: Expr) -> Result<Path, Error> {
    let advice = "write the path of leader-core in this crate: `crate = \"leader\"`, say";
    match literal(&value) {
        Some(Lit::Str(text)) => text
            .parse_with(Path::parse_mod_style)
            .map_err(|_| Error::new(text.span(), advice)),
        _ => match value {
            Expr::Path(path) if path.qself.is_none() => Ok(path.path),
            other => Err(Error::new_spanned(other, advice)),
        },
    }
}
