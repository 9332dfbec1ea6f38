//! Which parameters live as long as what the function returns, which keeps them until its body has run.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, FnArg, GenericParam, Ident, Lifetime, Token, Type, TypeParam, TypeParamBound,
    TypeReference, WherePredicate,
};

use crate::item::{Item, Parameter, bound, conditions};
use crate::mentions::{mentions, names};
use crate::shape::{Shape, Wrap};

impl Item {
    /// What is to be over with the body, before the slot is given back, with its conditions: parameters that only wait to
    /// be dropped, `_permit` say, and those of which the body may use a part. Not those that what is returned outlives.
    pub(crate) fn kept(&self, shape: &Shape) -> Vec<(Vec<&Attribute>, Ident)> {
        let outlived = self.outliving(shape);
        let used = self.used(None);
        let is_kept = |ty: &TokenStream, name: &Ident| {
            let waits = name.to_string().starts_with('_');
            let is_owned = !ty.to_string().starts_with('&');
            (waits || is_owned && mentions(used.clone(), name).is_some())
                && outlived.is_none_or(|lives| !self.is_brief(ty, lives, shape))
        };
        let mut kept = Vec::new();
        for input in &self.sig.inputs {
            let (attrs, ty) = match input {
                FnArg::Receiver(receiver) => (&receiver.attrs, receiver.to_token_stream()),
                FnArg::Typed(typed) => (&typed.attrs, typed.ty.to_token_stream()),
            };
            let names = bound(input);
            let names = names.into_iter().filter(|name| is_kept(&ty, name));
            kept.extend(names.map(|name| (conditions(attrs), name)));
        }
        kept
    }

    /// The parameters of the body, `&T` all of them, that may be gone when it runs: what is returned, and runs it, lives
    /// for another lifetime. That it does not keep them is known, since the function was right without the attribute.
    pub(crate) fn brief(&self, shape: &Shape, skipped: Option<&Expr>) -> Vec<Parameter<'_>> {
        let Some(lives) = self.outliving(shape) else {
            return Vec::new();
        };
        let used = self.used(skipped);
        let is_brief = |reference: &TypeReference| match &reference.lifetime {
            Some(lifetime) => !self.outlives(&lifetime.ident, lives),
            None => true,
        };
        self.simple_parameters()
            .filter(|(ty, parameter)| match ty {
                Type::Reference(reference) => {
                    reference.mutability.is_none()
                        && is_brief(reference)
                        && mentions(used.clone(), parameter.name).is_some()
                }
                _ => false,
            })
            .map(|(_, parameter)| parameter)
            .collect()
    }

    /// As [`brief`](Self::brief), but `self`, of which there can be no copy: for how long it would have to live, and
    /// where it is used.
    pub(crate) fn brief_self<'s>(
        &self,
        shape: &'s Shape,
        skipped: Option<&Expr>,
    ) -> Option<(&'s Lifetime, Span)> {
        // An `async fn` keeps what it is given.
        let lives = shape.lives.as_ref().filter(|_| shape.wrap != Wrap::Async)?;
        let lives = Some(lives).filter(|lives| lives.ident != "_")?;
        let receiver = self.sig.receiver()?.to_token_stream();
        if !self.is_brief(&receiver, lives, shape) {
            return None;
        }
        let used = mentions(self.used(skipped), &Ident::new("self", Span::call_site()))?;
        Some((lives, used))
    }

    /// Whether there is a `&self`, or another reference to it, whose lifetime has no name.
    fn borrows_self(&self) -> bool {
        let receiver = self.sig.receiver();
        receiver.is_some_and(|receiver| {
            has_lifetime(receiver.to_token_stream(), &|named| {
                named.is_none_or(|named| named == "_")
            })
        })
    }

    /// The lifetime of what is returned, if it is another than that of the parameters that have no lifetime by name.
    fn outliving<'s>(&self, shape: &'s Shape) -> Option<&'s Lifetime> {
        let lives = shape.lives.as_ref()?;
        // Without a name it is the receiver's, if that is borrowed, or else that of the only parameter that is.
        let is_theirs = lives.ident == "_" && !self.borrows_self();
        (!is_theirs).then_some(lives)
    }

    /// Whether a type may have something in it that does not live for so long.
    fn is_brief(&self, ty: &TokenStream, lives: &Lifetime, shape: &Shape) -> bool {
        let outlives =
            |named: &Ident| shape.captured.contains(named) || self.outlives(named, lives);
        let has_such =
            |is_such: &dyn Fn(Option<&Ident>) -> bool| has_lifetime(ty.clone(), &is_such);
        let of_generic = |generic: &TypeParam| {
            !outlives(&generic.ident) && names(ty.clone(), &generic.ident.to_string())
        };
        has_such(&|named| named.is_none_or(|named| !outlives(named)))
            || self.sig.generics.type_params().any(of_generic)
            // What a type that has no name is made of is not known, unless it says how long it lives.
            || (names(ty.clone(), "impl") && !has_such(&|named| named.is_some()))
    }

    /// Whether the lifetime or type of this name is said to live for so long.
    fn outlives(&self, named: &Ident, lives: &Lifetime) -> bool {
        let is_enough =
            |lifetime: &Lifetime| lifetime.ident == "static" || lifetime.ident == lives.ident;
        let one_is_enough = |bounds: &Punctuated<TypeParamBound, Token![+]>| {
            bounds.iter().any(
                |bound| matches!(bound, TypeParamBound::Lifetime(lifetime) if is_enough(lifetime)),
            )
        };
        let generics = &self.sig.generics;
        let declared = generics.params.iter().any(|generic| match generic {
            GenericParam::Lifetime(param) => {
                param.lifetime.ident == *named && param.bounds.iter().any(is_enough)
            }
            GenericParam::Type(param) => param.ident == *named && one_is_enough(&param.bounds),
            GenericParam::Const(_) => false,
        });
        let predicates = generics
            .where_clause
            .iter()
            .flat_map(|clause| &clause.predicates);
        let mut predicates = predicates.map(|predicate| match predicate {
            WherePredicate::Lifetime(one) => {
                one.lifetime.ident == *named && one.bounds.iter().any(is_enough)
            }
            WherePredicate::Type(one) => match &one.bounded_ty {
                Type::Path(path) => path.path.is_ident(named) && one_is_enough(&one.bounds),
                _ => false,
            },
            _ => false,
        });
        // Without a name it is one of its own.
        named != "_"
            && (named == "static"
                || *named == lives.ident
                || declared
                || predicates.any(|is_enough| is_enough))
    }
}

/// Whether there is such a lifetime: of a reference that has none by name, there is none to ask for.
fn has_lifetime(tokens: TokenStream, is_such: &impl Fn(Option<&Ident>) -> bool) -> bool {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let next = tokens.peek();
        let found = match token {
            TokenTree::Group(group) => has_lifetime(group.stream(), is_such),
            TokenTree::Punct(punct) => match (punct.as_char(), next) {
                ('&', Some(TokenTree::Punct(next))) if next.as_char() == '\'' => false,
                ('&', _) => is_such(None),
                ('\'', Some(TokenTree::Ident(name))) => is_such(Some(name)),
                _ => false,
            },
            _ => false,
        };
        if found {
            return true;
        }
    }
    false
}
