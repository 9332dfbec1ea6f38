//! The annotated function, taken apart no further than needed: its body stays the tokens that its author wrote.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, FnArg, GenericParam, Ident, Pat, PatIdent, PatType, Signature, Token, Type,
    Visibility,
};

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
        let inputs = self.sig.inputs.iter().flat_map(bound);
        let mut names: Vec<String> = inputs.map(|name| name.unraw().to_string()).collect();
        for generic in &self.sig.generics.params {
            if let GenericParam::Const(constant) = generic {
                names.push(constant.ident.to_string());
            }
        }
        names
    }

    /// For each parameter that binds this name, the conditions under which it is there.
    pub(crate) fn conditions_of(&self, name: &str) -> Vec<Vec<&Attribute>> {
        let inputs = self.sig.inputs.iter();
        let binding = inputs.filter(|input| bound(input).iter().any(|bound| bound.unraw() == name));
        let attrs = binding.map(|input| match input {
            FnArg::Receiver(receiver) => &receiver.attrs,
            FnArg::Typed(typed) => &typed.attrs,
        });
        attrs.map(|attrs| conditions(attrs)).collect()
    }

    /// What runs late: the body, and the value for when it is skipped.
    pub(crate) fn used(&self, skipped: Option<&Expr>) -> TokenStream {
        let mut used = self
            .body
            .as_ref()
            .map_or_else(TokenStream::new, |body| body.statements.clone());
        used.extend(skipped.map(ToTokens::to_token_stream));
        used
    }

    /// The parameters that are a name and a type.
    pub(crate) fn simple_parameters(&self) -> impl Iterator<Item = (&Type, Parameter<'_>)> {
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
            let parameter = Parameter {
                conditions: conditions(attrs),
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

pub(crate) fn conditions(attrs: &[Attribute]) -> Vec<&Attribute> {
    let is_condition =
        |attr: &&Attribute| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr");
    attrs.iter().filter(is_condition).collect()
}

/// The names that a parameter binds.
pub(crate) fn bound(input: &FnArg) -> Vec<Ident> {
    let mut names = Vec::new();
    match input {
        FnArg::Receiver(receiver) => names.push(Ident::new("self", receiver.self_token.span)),
        FnArg::Typed(typed) => bound_in(&typed.pat, &mut names),
    }
    names
}

fn bound_in(pat: &Pat, names: &mut Vec<Ident>) {
    let mut all = |pats: &Punctuated<Pat, Token![,]>| {
        pats.iter().for_each(|pat| bound_in(pat, names));
    };
    match pat {
        Pat::Ident(pat) => {
            names.push(pat.ident.clone());
            if let Some((_, sub)) = &pat.subpat {
                bound_in(sub, names);
            }
        }
        Pat::Paren(pat) => bound_in(&pat.pat, names),
        Pat::Reference(pat) => bound_in(&pat.pat, names),
        Pat::Slice(pat) => all(&pat.elems),
        Pat::Struct(pat) => pat
            .fields
            .iter()
            .for_each(|field| bound_in(&field.pat, names)),
        Pat::Tuple(pat) => all(&pat.elems),
        Pat::TupleStruct(pat) => all(&pat.elems),
        Pat::Type(pat) => bound_in(&pat.pat, names),
        _ => {}
    }
}
