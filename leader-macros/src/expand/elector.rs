//! The elector: the one that is given, else the current one.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

use super::Expansion;

impl Expansion<'_> {
    /// `elector = ..`, or the parameter of that name.
    pub(super) fn given_elector(&self) -> Option<Given> {
        if let Some(elector) = &self.args.elector {
            return Some(Given {
                conditions: None,
                elector: quote!(#elector),
            });
        }
        let mut always = false;
        let predicates = self.item.conditions_of("elector").into_iter().map(|all| {
            always |= all.is_empty();
            let all = all.iter().filter_map(|attr| attr.meta.require_list().ok());
            let all = all
                .filter(|list| list.path.is_ident("cfg"))
                .map(|list| &list.tokens);
            quote!(all(#(#all),*))
        });
        let predicates: Vec<TokenStream> = predicates.collect();
        if predicates.is_empty() {
            return None;
        }
        let elector = Ident::new("elector", Span::call_site());
        Some(Given {
            conditions: (!always).then(|| quote!(any(#(#predicates),*))),
            elector: quote!(#elector),
        })
    }
}

/// An elector that is given.
pub(super) struct Given {
    /// When it is, in the words of `cfg`; always, if there are none.
    pub(super) conditions: Option<TokenStream>,
    pub(super) elector: TokenStream,
}

/// `let elector = ..`, a `Result`, of the given elector as `taken`, else of the current one.
pub(super) fn current_or(
    given: Option<&Given>,
    taken: impl FnOnce(&TokenStream) -> TokenStream,
) -> TokenStream {
    let current = quote_here! { let elector = __leader::current_elector(); };
    let Some(Given {
        conditions,
        elector,
    }) = given
    else {
        return current;
    };
    let taken = taken(elector);
    let conditions = conditions.as_ref();
    let (when, otherwise) = (
        conditions.map(|conditions| quote!(#[cfg(#conditions)])),
        conditions.map(|conditions| quote!(#[cfg(not(#conditions))] #current)),
    );
    quote_here! {
        #when
        let elector = #taken;
        #when
        let elector = ::core::result::Result::Ok(elector);
        #otherwise
    }
}

/// A clone of the given elector.
pub(super) fn kept(given: &TokenStream) -> TokenStream {
    quote_here! {
        {
            use __leader::Keep as _;
            (#given).keep_elector()
        }
    }
}
