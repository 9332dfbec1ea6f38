//! The annotated function, taken apart no further than needed: its body stays the tokens that its author wrote.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, FnArg, GenericParam, Ident, Pat, Signature, Token, Type, Visibility};

use crate::shape::Shape;

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
    /// before the slot is given back.
    pub(crate) fn kept(&self) -> Vec<&Ident> {
        let inputs = self.sig.inputs.iter();
        inputs
            .filter_map(|input| match input {
                FnArg::Typed(typed) => match &*typed.pat {
                    Pat::Ident(pat) if pat.ident.to_string().starts_with('_') => Some(&pat.ident),
                    _ => None,
                },
                FnArg::Receiver(_) => None,
            })
            .collect()
    }

    /// The parameters of the body, `&T` all of them, that may be gone when it runs: what is returned, and runs it, lives
    /// for another lifetime. That it does not keep them is known, since the function was right without the attribute.
    pub(crate) fn brief(&self, shape: &Shape, body: &Body) -> Vec<&Ident> {
        let Some(lives) = &shape.lives else {
            return Vec::new();
        };
        // Without a name it is the receiver's lifetime, or else that of the only parameter that has one.
        if lives.ident == "_" && self.sig.receiver().is_none() {
            return Vec::new();
        }
        let inputs = self.sig.inputs.iter();
        inputs
            .filter_map(|input| {
                let FnArg::Typed(typed) = input else {
                    return None;
                };
                match (&*typed.pat, &*typed.ty) {
                    (Pat::Ident(pat), Type::Reference(reference))
                        if reference.lifetime.is_none() && reference.mutability.is_none() =>
                    {
                        Some(&pat.ident)
                    }
                    _ => None,
                }
            })
            .filter(|ident| mentions(body.statements.clone(), &ident.to_string()))
            .collect()
    }

    /// The same function with another body, given without its braces.
    pub(crate) fn with_body(&self, body: &TokenStream) -> TokenStream {
        let Self {
            attrs,
            vis,
            defaultness,
            sig,
            ..
        } = self;
        let inner_attrs = self.body.iter().flat_map(|body| &body.inner_attrs);
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

/// Whether the tokens have the name, also within a literal that `format!` may read.
fn mentions(tokens: TokenStream, name: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(group.stream(), name),
        TokenTree::Literal(literal) => literal.to_string().contains(&format!("{{{name}")),
        TokenTree::Punct(_) => false,
    })
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
