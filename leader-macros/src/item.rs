//! The annotated function, taken apart no further than needed: its body stays the tokens that its author wrote.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Expr, FnArg, GenericParam, Ident, Lifetime, Pat, PatIdent, PatType, Signature,
    Token, Type, Visibility,
};

use crate::mentions::mentions;
use crate::shape::{Shape, Wrap};

pub(crate) struct Item {
    attrs: Vec<Attribute>,
    vis: Visibility,
    /// `default`, in impls.
    defaultness: Option<Token![default]>,
    pub(crate) sig: Signature,
    /// `None` where a trait only declares the function.
    pub(crate) body: Option<Body>,
}

pub(crate) struct Body {
    /// `#![..]` at its start; they are the function's.
    inner_attrs: Vec<Attribute>,
    /// What else is between its braces.
    statements: TokenStream,
    braces: Span,
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        let defaultness = if input.peek(Token![default]) && !input.peek2(Token![!]) {
            Some(input.parse()?)
        } else {
            None
        };
        let sig = input.parse()?;
        let body = if input.peek(Token![;]) {
            input.parse::<Token![;]>()?;
            None
        } else {
            Some(input.parse()?)
        };
        Ok(Self {
            attrs,
            vis,
            defaultness,
            sig,
            body,
        })
    }
}

impl Parse for Body {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let content;
        let brace = syn::braced!(content in input);
        let inner_attrs = content.call(Attribute::parse_inner)?;
        Ok(Self {
            inner_attrs,
            statements: content.parse()?,
            braces: brace.span.join(),
        })
    }
}

impl Body {
    /// The statements, with others in front.
    pub(crate) fn statements_after(&self, mut first: TokenStream) -> TokenStream {
        first.extend(self.statements.clone());
        first
    }

    /// The body in its braces, with other statements in front.
    pub(crate) fn block_after(&self, first: TokenStream) -> TokenTree {
        let mut block = Group::new(Delimiter::Brace, self.statements_after(first));
        block.set_span(self.braces);
        block.into()
    }
}

impl Item {
    /// The names that its parameters bind, also in patterns, and its constant parameters.
    pub(crate) fn parameters(&self) -> Vec<String> {
        let mut names = Vec::new();
        for input in &self.sig.inputs {
            match input {
                FnArg::Receiver(_) => names.push("self".to_owned()),
                FnArg::Typed(typed) => bound(&typed.pat, &mut names),
            }
        }
        for generic in &self.sig.generics.params {
            if let GenericParam::Const(constant) = generic {
                names.push(constant.ident.to_string());
            }
        }
        names
    }

    /// The parameters that only wait to be dropped, `_permit` say. They are the body's too: it must be over with them
    /// before the slot is given back. Not those that what is returned outlives.
    pub(crate) fn kept(&self, shape: &Shape) -> Vec<Parameter<'_>> {
        let outlived = self.outliving(shape).is_some();
        self.simple_parameters()
            .filter(|(ty, parameter)| {
                parameter.name.to_string().starts_with('_')
                    && !(outlived && has_unnamed_lifetime(ty.to_token_stream()))
            })
            .map(|(_, parameter)| parameter)
            .collect()
    }

    /// The parameters of the body, `&T` all of them, that may be gone when it runs: what is returned, and runs it, lives
    /// for another lifetime. That it does not keep them is known, since the function was right without the attribute.
    pub(crate) fn brief(&self, shape: &Shape, skipped: Option<&Expr>) -> Vec<Parameter<'_>> {
        if self.outliving(shape).is_none() {
            return Vec::new();
        }
        let used = self.used(skipped);
        self.simple_parameters()
            .filter(|(ty, parameter)| match ty {
                Type::Reference(reference) => {
                    reference.lifetime.is_none()
                        && reference.mutability.is_none()
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
        let unnamed = self.borrows_self();
        let lives = shape.lives.as_ref().filter(|lives| lives.ident != "_");
        // An `async fn` keeps what it is given.
        let lives = lives.filter(|_| unnamed && shape.wrap != Wrap::Async)?;
        let used = mentions(self.used(skipped), &Ident::new("self", Span::call_site()))?;
        Some((lives, used))
    }

    /// Whether there is a `&self`, or another reference to it, whose lifetime has no name.
    fn borrows_self(&self) -> bool {
        let receiver = self.sig.receiver();
        receiver.is_some_and(|receiver| has_unnamed_lifetime(receiver.to_token_stream()))
    }

    /// The lifetime of what is returned, if it is another than that of the parameters that have no lifetime by name.
    fn outliving<'s>(&self, shape: &'s Shape) -> Option<&'s Lifetime> {
        let lives = shape.lives.as_ref()?;
        // Without a name it is the receiver's, if that is borrowed, or else that of the only parameter that is.
        let is_theirs = lives.ident == "_" && !self.borrows_self();
        (!is_theirs).then_some(lives)
    }

    /// What runs late: the body, and the value for when it is skipped.
    fn used(&self, skipped: Option<&Expr>) -> TokenStream {
        let mut used = self
            .body
            .as_ref()
            .map_or_else(TokenStream::new, |body| body.statements.clone());
        used.extend(skipped.map(ToTokens::to_token_stream));
        used
    }

    /// The parameters that are a name and a type.
    fn simple_parameters(&self) -> impl Iterator<Item = (&Type, Parameter<'_>)> {
        self.sig.inputs.iter().filter_map(|input| {
            let FnArg::Typed(PatType { attrs, pat, ty, .. }) = input else {
                return None;
            };
            let Pat::Ident(PatIdent {
                by_ref: None,
                mutability,
                ident: name,
                ..
            }) = &**pat
            else {
                return None;
            };
            let is_condition =
                |attr: &&Attribute| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr");
            let parameter = Parameter {
                conditions: attrs.iter().filter(is_condition).collect(),
                mutability: mutability.as_ref(),
                name,
            };
            Some((&**ty, parameter))
        })
    }

    /// The same function with another body, given without its braces, which takes these parameters as they are.
    pub(crate) fn with_body(&self, body: &TokenStream, unchanged: &[Parameter<'_>]) -> TokenStream {
        let Self {
            attrs,
            vis,
            defaultness,
            sig,
            ..
        } = self;
        let inner_attrs = self.body.iter().flat_map(|body| &body.inner_attrs);
        let mut sig = sig.clone();
        for input in &mut sig.inputs {
            if let FnArg::Typed(typed) = input
                && let Pat::Ident(pat) = &mut *typed.pat
                && unchanged
                    .iter()
                    .any(|parameter| *parameter.name == pat.ident)
            {
                pat.mutability = None;
            }
        }
        quote::quote! {
            #(#attrs)* #vis #defaultness #sig { #(#inner_attrs)* #body }
        }
    }

    /// A declaration, as it was.
    pub(crate) fn without_body(&self) -> TokenStream {
        let Self {
            attrs, vis, sig, ..
        } = self;
        quote::quote! { #(#attrs)* #vis #sig; }
    }
}

/// A parameter that is a name and a type.
pub(crate) struct Parameter<'a> {
    /// `#[cfg(..)]`, which hold for all that is done with it.
    pub(crate) conditions: Vec<&'a Attribute>,
    pub(crate) mutability: Option<&'a Token![mut]>,
    pub(crate) name: &'a Ident,
}

/// Whether there is a reference without a lifetime, or the lifetime `'_`.
fn has_unnamed_lifetime(tokens: TokenStream) -> bool {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let next = tokens.peek();
        let found = match token {
            TokenTree::Group(group) => has_unnamed_lifetime(group.stream()),
            TokenTree::Punct(punct) => match (punct.as_char(), next) {
                ('&', Some(TokenTree::Punct(next))) => next.as_char() != '\'',
                ('&', _) => true,
                ('\'', Some(TokenTree::Ident(name))) => name == "_",
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

fn bound(pat: &Pat, names: &mut Vec<String>) {
    match pat {
        Pat::Ident(pat) => {
            names.push(pat.ident.to_string().trim_start_matches("r#").to_owned());
            if let Some((_, sub)) = &pat.subpat {
                bound(sub, names);
            }
        }
        Pat::Paren(pat) => bound(&pat.pat, names),
        Pat::Reference(pat) => bound(&pat.pat, names),
        Pat::Slice(pat) => pat.elems.iter().for_each(|pat| bound(pat, names)),
        Pat::Struct(pat) => pat.fields.iter().for_each(|field| bound(&field.pat, names)),
        Pat::Tuple(pat) => pat.elems.iter().for_each(|pat| bound(pat, names)),
        Pat::TupleStruct(pat) => pat.elems.iter().for_each(|pat| bound(pat, names)),
        Pat::Type(pat) => bound(&pat.pat, names),
        _ => {}
    }
}
