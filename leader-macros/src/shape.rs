//! What kind of function it is: what it gives, and how that is written.

use proc_macro2::Span;
use quote::{ToTokens, quote};
use syn::punctuated::Punctuated;
use syn::{
    AngleBracketedGenericArguments, CapturedParam, Error, GenericArgument, Ident, Lifetime,
    PathArguments, ReturnType, Signature, Token, Type, TypeParamBound, TypePath, TypeTraitObject,
};

use crate::mentions::names;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Future,
    Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrap {
    /// `async fn`: the body awaits by itself.
    Async,
    /// `impl Future`, `impl Stream`.
    Bare,
    /// `Pin<Box<..>>` under any name.
    Boxed,
}

pub(crate) struct Shape {
    pub(crate) kind: Kind,
    pub(crate) wrap: Wrap,
    /// What the future comes to, or the stream's items, where the signature says so; with `_` for each `impl Trait`.
    /// The parameters of an alias do not say it, whatever its name is.
    pub(crate) output: Option<Type>,
    /// How long what is returned lives, where that is not as long as all parameters.
    pub(crate) lives: Option<Lifetime>,
    /// The lifetimes and types that it keeps whatever it `lives`, by `use<..>`.
    pub(crate) captured: Vec<Ident>,
    /// The return type where it may be written inside a body.
    pub(crate) returned: Option<Type>,
}

/// The type itself, without the invisible group around one that came through a `macro_rules` macro.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        ty => ty,
    }
}

/// Finds out the shape from the signature, or from the key `kind` where the signature hides it.
pub(crate) fn of(sig: &Signature, told: Option<Kind>) -> Result<Shape, Error> {
    let returned = match &sig.output {
        ReturnType::Type(_, returned) => bare(returned).clone(),
        ReturnType::Default => syn::parse_quote_spanned!(sig.ident.span()=> ()),
    };
    if sig.asyncness.is_some() {
        return Ok(Shape {
            kind: Kind::Future,
            wrap: Wrap::Async,
            output: Some(erased(&returned)),
            lives: None,
            captured: Vec::new(),
            returned: None,
        });
    }
    let found = match &returned {
        Type::ImplTrait(opaque) => among(&opaque.bounds).map(|found| (Wrap::Bare, found)),
        Type::Path(path) => named(path).map(|found| (Wrap::Boxed, found)),
        _ => None,
    };
    let (wrap, (kind, output)) = match (found, told) {
        // Whoever says the kind says that the type's name does not: it may be an alias of any shape.
        (_, Some(kind)) if matches!(returned, Type::Path(_)) => (Wrap::Boxed, (kind, None)),
        (Some((wrap, (kind, output))), _) => (wrap, (kind, output)),
        _ => return Err(no_shape(sig)),
    };
    let may_be_written = !mentions_impl(&returned);
    let output = output.as_ref().map(erased);
    let lives = lives(&returned, wrap);
    Ok(Shape {
        kind,
        lives,
        captured: captured(&returned),
        wrap,
        output,
        returned: may_be_written.then_some(returned),
    })
}

/// The lifetime of a boxed future or stream, which is `'static` when there is none; that of an opaque one, where it says
/// one.
fn lives(returned: &Type, wrap: Wrap) -> Option<Lifetime> {
    let bounds = |bounds: &Punctuated<TypeParamBound, Token![+]>| {
        bounds.iter().find_map(|bound| match bound {
            TypeParamBound::Lifetime(lifetime) => Some(lifetime.clone()),
            _ => None,
        })
    };
    match returned {
        Type::ImplTrait(opaque) => {
            let is_brief = || opaque.bounds.iter().any(leaves_unnamed);
            bounds(&opaque.bounds).or_else(|| is_brief().then(forever))
        }
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let named = arguments(&last.arguments).find_map(|argument| match argument {
                GenericArgument::Lifetime(lifetime) => Some(lifetime.clone()),
                _ => None,
            });
            let in_box = boxed(path).and_then(|object| bounds(&object.bounds));
            let lifetime = named.or(in_box);
            Some(lifetime.unwrap_or_else(forever)).filter(|_| wrap == Wrap::Boxed)
        }
        _ => None,
    }
}

/// Whether it is a `use<..>` that does not keep lifetimes without a name.
fn leaves_unnamed(bound: &TypeParamBound) -> bool {
    let is_unnamed = |param: &CapturedParam| matches!(param, CapturedParam::Lifetime(named) if named.ident == "_");
    match bound {
        TypeParamBound::PreciseCapture(capture) => !capture.params.iter().any(is_unnamed),
        _ => false,
    }
}

fn captured(returned: &Type) -> Vec<Ident> {
    let bounds = match returned {
        Type::ImplTrait(opaque) => Some(&opaque.bounds),
        _ => None,
    };
    let captures = bounds
        .into_iter()
        .flatten()
        .filter_map(|bound| match bound {
            TypeParamBound::PreciseCapture(capture) => Some(&capture.params),
            _ => None,
        });
    let named = captures.flatten().filter_map(|param| match param {
        CapturedParam::Lifetime(named) => Some(named.ident.clone()),
        CapturedParam::Ident(named) => Some(named.clone()),
        _ => None,
    });
    named.collect()
}

fn forever() -> Lifetime {
    Lifetime::new("'static", Span::mixed_site())
}

fn no_shape(sig: &Signature) -> Error {
    let message = "a lease guards a function that waits: write `async fn`, or return a future or a stream (`impl Future`, `BoxFuture`, `impl Stream`, `BoxStream`, ..)";
    match &sig.output {
        ReturnType::Type(_, returned) if matches!(**returned, Type::Path(_)) => Error::new_spanned(
            sig.fn_token,
            format!(
                "{message}; if `{}` is an alias of a boxed one, add `kind = \"future\"` or `kind = \"stream\"`",
                text(returned)
            ),
        ),
        _ => Error::new_spanned(sig.fn_token, message),
    }
}

/// A type as its author would write it, near enough for a message.
fn text(ty: &Type) -> String {
    let text = quote!(#ty).to_string();
    text.replace(" < ", "<")
        .replace(" > ", ">")
        .replace(" >", ">")
        .replace(" :: ", "::")
        .replace(" ,", ",")
        .replace("& ", "&")
}

/// `Future<Output = T>` or `Stream<Item = T>` among the bounds of an `impl` or `dyn`.
fn among<'a>(bounds: impl IntoIterator<Item = &'a TypeParamBound>) -> Option<(Kind, Option<Type>)> {
    bounds.into_iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else {
            return None;
        };
        let last = bound.path.segments.last()?;
        let (kind, item) = if last.ident == "Future" {
            (Kind::Future, "Output")
        } else if last.ident == "Stream" {
            (Kind::Stream, "Item")
        } else {
            return None;
        };
        let output = arguments(&last.arguments).find_map(|argument| match argument {
            GenericArgument::AssocType(assoc) if assoc.ident == item => Some(assoc.ty.clone()),
            _ => None,
        });
        Some((kind, output))
    })
}

/// `Pin<Box<dyn ..>>` and the aliases of the `futures` crate, or others of their names.
fn named(path: &TypePath) -> Option<(Kind, Option<Type>)> {
    let last = path.path.segments.last()?;
    match last.ident.to_string().as_str() {
        "BoxFuture" | "LocalBoxFuture" => Some((Kind::Future, None)),
        "BoxStream" | "LocalBoxStream" => Some((Kind::Stream, None)),
        "Pin" => boxed(path).and_then(|object| among(&object.bounds)),
        _ => None,
    }
}

/// The trait object in `Pin<Box<dyn ..>>`.
fn boxed(path: &TypePath) -> Option<&TypeTraitObject> {
    let Type::Path(inner) = only_type(path)? else {
        return None;
    };
    match only_type(inner)? {
        Type::TraitObject(object) if inner.path.segments.last()?.ident == "Box" => Some(object),
        _ => None,
    }
}

fn only_type(path: &TypePath) -> Option<&Type> {
    arguments(&path.path.segments.last()?.arguments).find_map(as_type)
}

fn arguments(arguments: &PathArguments) -> impl Iterator<Item = &GenericArgument> {
    let arguments = match arguments {
        PathArguments::AngleBracketed(AngleBracketedGenericArguments { args, .. }) => Some(args),
        _ => None,
    };
    arguments.into_iter().flatten()
}

fn as_type(argument: &GenericArgument) -> Option<&Type> {
    match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

fn mentions_impl(ty: &Type) -> bool {
    names(ty.to_token_stream(), "impl")
}

/// The type with `_` for each `impl Trait` in it, since a body may not write that.
fn erased(ty: &Type) -> Type {
    let mut ty = ty.clone();
    erase(&mut ty);
    ty
}

fn erase(ty: &mut Type) {
    if !mentions_impl(ty) {
        return;
    }
    match ty {
        Type::Path(path) => {
            for segment in &mut path.path.segments {
                if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
                    for argument in &mut arguments.args {
                        if let GenericArgument::Type(ty) = argument {
                            erase(ty);
                        }
                    }
                }
            }
        }
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(erase),
        Type::Array(array) => erase(&mut array.elem),
        Type::Reference(reference) => erase(&mut reference.elem),
        Type::Paren(paren) => erase(&mut paren.elem),
        _ => *ty = syn::parse_quote!(_),
    }
    // What is left lies where a type cannot be left out in part.
    if mentions_impl(ty) {
        *ty = syn::parse_quote!(_);
    }
}
