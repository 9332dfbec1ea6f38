//! What must fit together: the keys with each other, and the attribute with its function.

use std::time::Duration;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::{Lit, LitStr, Type};

use crate::args::{Args, Mistakes, Name, OnError, Time, literal};
use crate::item::Item;
use crate::name::{self, Unknown};
use crate::shape::{self, Kind, Shape};

const DEFAULT_LEASE: Duration = Duration::from_secs(60);
const SHORTEST_LEASE: Duration = Duration::from_millis(10);
const LONGEST_LEASE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The keys that stand in `options` when there is one.
const OPTION_KEYS: [&str; 7] = [
    "wait",
    "lease",
    "min_lease",
    "max_tenure",
    "auto_extend",
    "slots",
    "on_lost",
];

pub(crate) fn check(args: &Args, item: &Item, mistakes: &mut Mistakes) -> Option<Shape> {
    named(args, mistakes);
    times(args, mistakes);
    if args.options.is_some() {
        for key in &args.keys {
            if OPTION_KEYS.iter().any(|option| key == option) {
                mistakes.at(
                    key.span(),
                    format!(
                        "`{key}` is set by `options` already; set it there, or leave `options` out"
                    ),
                );
            }
        }
    }
    let shape = function(args, item, mistakes)?;
    match shape.kind {
        Kind::Stream => stream(args, mistakes),
        Kind::Future => {
            plain_value(args, &shape, mistakes);
            if let Some((true, span)) = args.bounded {
                mistakes.at(
                    span,
                    "`bounded` is about streams; a future comes to its end by itself, leave it out",
                );
            }
        }
    }
    Some(shape)
}

fn named(args: &Args, mistakes: &mut Mistakes) {
    if !args.attempted("name") {
        mistakes.at(
            Span::call_site(),
            "what is led has no name; write `name = \"invoice-close\"`, say",
        );
    }
}

/// A placeholder that is no parameter, with its literal.
pub(crate) fn unknown_placeholder<'a>(
    args: &'a Args,
    item: &Item,
) -> Option<(&'a LitStr, Unknown)> {
    match &args.name {
        Some(Name::Literal(literal, pattern)) => {
            let unknown = name::unknown(pattern, &item.parameters())?;
            Some((literal, unknown))
        }
        _ => None,
    }
}

fn times(args: &Args, mistakes: &mut Mistakes) {
    let lease = match &args.lease {
        None if args.attempted("lease") => None,
        None => Some(DEFAULT_LEASE),
        Some(Time::Expr(_)) => None,
        Some(Time::Literal(lease, span)) => {
            if *lease < SHORTEST_LEASE {
                mistakes.at(
                    *span,
                    "a lease lives 10 ms at least; write `\"10ms\"` or more",
                );
                None
            } else if *lease > LONGEST_LEASE {
                mistakes.at(
                    *span,
                    "a lease lives 365 days at most; write a short one, and `auto_extend`",
                );
                None
            } else {
                Some(*lease)
            }
        }
    };
    let Some(lease) = lease else { return };
    let whose = match &args.lease {
        Some(_) => "the lease".to_owned(),
        None => "the lease, which is 60 s when not given".to_owned(),
    };
    if let Some(Time::Literal(min_lease, span)) = &args.min_lease
        && *min_lease > lease
    {
        mistakes.at(
            *span,
            format!("`min_lease` is longer than {whose}; shorten it or lengthen `lease`"),
        );
    }
    if let Some(Time::Literal(max_tenure, span)) = &args.max_tenure
        && *max_tenure < lease
    {
        mistakes.at(
            *span,
            format!("`max_tenure` is shorter than {whose}; lengthen it or shorten `lease`"),
        );
    }
}

fn function(args: &Args, item: &Item, mistakes: &mut Mistakes) -> Option<Shape> {
    let sig = &item.sig;
    if item.body.is_none() {
        mistakes.at(
            sig.ident.span(),
            "there is no body to guard here; put the attribute on the functions of the `impl`, or give a body",
        );
    }
    if let Some(constness) = &sig.constness {
        mistakes.at(
            constness.span,
            "a `const fn` cannot wait for a lease; write `async fn`",
        );
        return None;
    }
    let shape = match shape::of(sig, args.kind.map(|(kind, _)| kind)) {
        Ok(shape) => shape,
        Err(mistake) => {
            // A kind that could not be read would have told.
            if args.kind.is_some() || !args.attempted("kind") {
                mistakes.push(mistake);
            }
            return None;
        }
    };
    if let Some((kind, span)) = args.kind
        && kind != shape.kind
    {
        let is = match shape.kind {
            Kind::Future => "future",
            Kind::Stream => "stream",
        };
        mistakes.at(
            span,
            format!("this function returns a {is}, as its signature says; leave `kind` out"),
        );
    }
    if let Some((lives, span)) = item.brief_self(&shape, args.skipped.as_ref()) {
        mistakes.at(
            span,
            format!(
                "what this function returns lives for `{lives}`, and runs the body when it is polled: `self` may be gone by then; return what borrows `self` (`BoxFuture<'_, ..>`, `impl Stream<..> + '_`, ..), or take `self: Arc<Self>`"
            ),
        );
    }
    Some(shape)
}

/// Types that can say neither "skipped" nor "failed", and for which nobody can add it: one error in the place of rustc's
/// two.
fn plain_value(args: &Args, shape: &Shape, mistakes: &mut Mistakes) {
    const PLAIN: [&str; 17] = [
        "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16",
        "u32", "u64", "u128", "usize", "String",
    ];
    let Some(Type::Path(path)) = &shape.output else {
        return;
    };
    let returns = match args.on_error {
        Some(choice) => choice == OnError::Return,
        None => !args.attempted("on_error"),
    };
    if returns
        && !args.attempted("skipped")
        && let Some(name) = path.path.get_ident()
        && PLAIN.iter().any(|plain| name == plain)
    {
        mistakes.at(
            name.span(),
            format!(
                "`{name}` cannot say that the run was skipped or that it failed; return `Result<Option<{name}>, E>` where `E: From<LeaderError>`, say"
            ),
        );
    }
}

fn stream(args: &Args, mistakes: &mut Mistakes) {
    let extended = args.auto_extend.as_ref().is_some_and(|flag| {
        // An expression is taken at its word.
        !matches!(literal(flag), Some(Lit::Bool(flag)) if !flag.value)
    });
    let bounded = matches!(args.bounded, Some((true, _)));
    // What could not be read was meant to say it.
    let unreadable = (args.auto_extend.is_none() && args.attempted("auto_extend"))
        || (args.bounded.is_none() && args.attempted("bounded"));
    if !extended && !bounded && !unreadable && !args.attempted("options") {
        let at = args
            .auto_extend
            .as_ref()
            .map_or_else(Span::call_site, Spanned::span);
        mistakes.at(
            at,
            "a stream may outlive its lease; add `auto_extend`, or `bounded` if it surely ends within the lease",
        );
    }
    if let Some(skipped) = &args.skipped {
        mistakes.at(
            skipped.span(),
            "a stream that is skipped is empty; leave `skipped` out",
        );
    }
}
