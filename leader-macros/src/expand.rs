//! The function that is written in place of the annotated one. The signature stays; the body moves into a closure that
//! leader-core calls once there is a lease.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Error, Path, Type, parse_quote_spanned};

use crate::args::{self, Args, Mistakes, Name, OnError};
use crate::check;
use crate::item::{Body, Item, Parameter};
use crate::mentions::{mentions, names};
use crate::shape::{Kind, Shape, Wrap};

/// Tokens whose local names neither see the user's nor are seen by them.
macro_rules! quote_here {
    ($($tokens:tt)*) => { quote::quote_spanned! { proc_macro2::Span::mixed_site()=> $($tokens)* } };
}

mod options;

pub(crate) fn expand(args: TokenStream, item: &TokenStream) -> TokenStream {
    let mut mistakes = Mistakes::default();
    let args = args::parse(args, &mut mistakes);
    let item = match syn::parse2::<Item>(item.clone()) {
        Ok(item) => item,
        Err(error) => {
            mistakes.push(not_a_function(&error));
            let mistakes = mistakes.into_error().map(Error::into_compile_error);
            return quote! { #mistakes #item };
        }
    };
    let shape = check::check(&args, &item, &mut mistakes);
    let slip = slip(&args, &item, &mut mistakes);
    match (mistakes.into_error(), shape, &item.body) {
        // A slip in a placeholder, too: rustc does not find what it names, in the very place; and if it does after all,
        // nothing runs unguarded.
        (None, Some(shape), Some(body)) => {
            let brief = item.brief(&shape, args.skipped.as_ref());
            let guarded = Expansion::new(&args, &item, &shape, &brief).function(body);
            item.with_body(&guarded, &brief)
        }
        // With the function as it was, so that its callers see no second error. The errors stand inside: beside it they
        // would keep rustc from looking for what the slip names.
        (error, _, Some(body)) => {
            let error = error.map(Error::into_compile_error);
            let statements = body.statements_after(quote! { #error; #slip });
            let unguarded = item.with_body(&statements, &[]);
            quote! { #[allow(unused)] #unguarded }
        }
        (error, _, None) => {
            let error = error.map(Error::into_compile_error);
            let declaration = item.without_body();
            quote! { #error #declaration }
        }
    }
}

fn not_a_function(error: &Error) -> Error {
    let message = format!("`#[leader_election]` stands on a function: {error}");
    Error::new(error.span(), message)
}

/// A placeholder that is a slip is reported by rustc itself, which can underline it inside the literal and knows what
/// was meant: this is the statement that makes it do so. When nothing similar is there, or there is no body for it, the
/// mistake is one of ours.
fn slip(args: &Args, item: &Item, mistakes: &mut Mistakes) -> Option<TokenStream> {
    let (literal, unknown) = check::unknown_placeholder(args, item)?;
    if unknown.is_slip && item.body.is_some() {
        return Some(quote! { let _ = ::core::format_args!(#literal); });
    }
    mistakes.push(Error::new(literal.span(), unknown.advice));
    None
}

struct Expansion<'a> {
    args: &'a Args,
    item: &'a Item,
    shape: &'a Shape,
    /// What parameters borrow too briefly for what is returned, which has copies of it.
    brief: &'a [Parameter<'a>],
    krate: Path,
}

impl<'a> Expansion<'a> {
    fn new(args: &'a Args, item: &'a Item, shape: &'a Shape, brief: &'a [Parameter<'a>]) -> Self {
        let krate = args
            .krate
            .clone()
            .unwrap_or_else(|| syn::parse_quote!(::leader_core));
        Self {
            args,
            item,
            shape,
            brief,
            krate,
        }
    }

    /// The new body, without braces.
    fn function(&self, body: &Body) -> TokenStream {
        let krate = &self.krate;
        let guarded = match self.shape.kind {
            Kind::Future if self.shape.wrap == Wrap::Async => self.async_fn(body),
            Kind::Future => self.future(body),
            Kind::Stream => self.stream(body),
        };
        quote_here! {
            use #krate::__private as __leader;
            #guarded
        }
    }

    /// What is returned, as the signature wants it. It stands last, and an `async` block directly in its box: so
    /// `#[instrument]` finds it, and polls it in its span.
    fn wrapped(&self, returned: TokenStream) -> TokenStream {
        match self.shape.wrap {
            Wrap::Boxed => quote_here! { ::std::boxed::Box::pin(#returned) },
            Wrap::Async | Wrap::Bare => returned,
        }
    }

    fn async_fn(&self, body: &Body) -> TokenStream {
        let (name, options) = (self.name(), self.options());
        // Only looked at until there is a lease: the body may consume it.
        let elector = current_or(
            self.given_elector().as_ref(),
            |given| quote_here! { &(#given) },
        );
        let when_failing = self.when_failing();
        let led = self.led(&self.body(body));
        quote_here! {
            let stood = {
                #name
                #options
                #elector
                __leader::stand(elector, name, options, #when_failing).await
            };
            #led
        }
    }

    /// A function that returns a future may return one that borrows less than its parameters: what depends on them is
    /// found out when it is called.
    fn future(&self, body: &Body) -> TokenStream {
        let (name, options) = (self.name(), self.options());
        let given = self.given_elector();
        let kept = given.as_ref().map(
            |Given {
                 conditions,
                 elector,
             }| {
                let conditions = conditions.iter();
                let kept = kept(elector);
                quote_here! { #(#[cfg(#conditions)])* let elector = #kept; }
            },
        );
        let elector = current_or(given.as_ref(), |_| quote_here! { elector });
        let when_failing = self.when_failing();
        let copies = self.copies();
        let led = self.led(&self.body(body));
        let future = self.wrapped(quote_here! {
            async move {
                #elector
                let stood = __leader::stand(elector, name, options, #when_failing).await;
                #led
            }
        });
        quote_here! {
            #name
            #options
            #kept
            #copies
            #future
        }
    }

    fn stream(&self, body: &Body) -> TokenStream {
        let (name, options) = (self.name(), self.options());
        let elector = current_or(self.given_elector().as_ref(), kept);
        let when_failing = self.when_failing();
        let last_items = match self.output() {
            Type::Infer(_) => quote_here! { __leader::LastItems::none() },
            items => quote_here! {
                {
                    use __leader::{LastIsError as _, LastIsErrorAtOnce as _, LastIsItem as _};
                    (&&&__leader::Probe::<#items>::new()).last_items()
                }
            },
        };
        let copies = self.copies();
        let body = self.body(body);
        let stream = self.wrapped(quote_here! {
            __leader::guard_stream(elector, name, options, #when_failing, last_items, #body)
        });
        quote_here! {
            #name
            #options
            #elector
            let last_items = #last_items;
            #copies
            #stream
        }
    }

    /// What follows once `stood`.
    fn led(&self, body: &TokenStream) -> TokenStream {
        let output = self.output();
        let (skipped, failed) = (self.skipped(), self.failed());
        quote_here! {
            let ended = match stood {
                __leader::Stood::Go(go) => go.run::<#output, _, _>(#body).await,
                __leader::Stood::Skipped(skipped) => return #skipped,
                __leader::Stood::Failed(error) => ::core::result::Result::Err(error),
            };
            match ended {
                ::core::result::Result::Ok(value) => value,
                ::core::result::Result::Err(error) => #failed,
            }
        }
    }

    /// The copies that outlive the call: for the body, and for the value that is returned when it was skipped.
    fn copies(&self) -> TokenStream {
        let in_skipped = self
            .in_skipped()
            .map(|parameter| (parameter, self.copy_in_skipped(parameter.name)))
            .filter(|(parameter, copy)| parameter.name != copy);
        let in_body = self
            .brief
            .iter()
            .map(|parameter| (parameter, parameter.name.clone()));
        let copies = in_skipped.chain(in_body).map(|(parameter, copy)| {
            let Parameter {
                conditions, name, ..
            } = parameter;
            quote_here! { #(#conditions)* let #copy = __leader::Copied::of(#name); }
        });
        copies.collect()
    }

    /// The copied parameters that `skipped` uses.
    fn in_skipped(&self) -> impl Iterator<Item = &Parameter<'a>> {
        let skipped = self.args.skipped.as_ref().map(ToTokens::to_token_stream);
        self.brief.iter().filter(move |parameter| {
            skipped
                .as_ref()
                .is_some_and(|skipped| mentions(skipped.clone(), parameter.name).is_some())
        })
    }

    /// The copy that `skipped` uses: the body's, or one more where it may be asked for after the body, which has taken
    /// its own along.
    fn copy_in_skipped(&self, name: &Ident) -> Ident {
        match self.args.on_error {
            None | Some(OnError::Return) => name.clone(),
            Some(OnError::Skip | OnError::Run) => {
                quote::format_ident!("{name}_when_skipped", span = Span::mixed_site())
            }
        }
    }

    fn when_failing(&self) -> TokenStream {
        let choice = match self.args.on_error {
            None | Some(OnError::Return) => quote_here!(Fail),
            Some(OnError::Skip) => quote_here!(Skip),
            Some(OnError::Run) => quote_here!(Run),
        };
        quote_here!(__leader::WhenFailing::#choice)
    }

    /// What the future comes to, or the stream's items, as a type that may be written inside a body.
    fn output(&self) -> Type {
        match (&self.shape.output, &self.shape.returned, self.shape.kind) {
            (Some(output), ..) => output.clone(),
            (None, None, _) => syn::parse_quote!(_),
            (None, Some(returned), kind) => {
                // What is wrong with it is shown where it stands.
                let span = Span::mixed_site().located_at(returned.span());
                match kind {
                    Kind::Future => parse_quote_spanned! {span=>
                        <#returned as ::core::future::Future>::Output
                    },
                    Kind::Stream => parse_quote_spanned! {span=>
                        <#returned as __leader::Stream>::Item
                    },
                }
            }
        }
    }

    /// What is returned when `skipped`.
    fn skipped(&self) -> TokenStream {
        let output = self.output();
        let Some(given) = &self.args.skipped else {
            return quote_here! { <#output as __leader::FromSkip>::from_skip(skipped) };
        };
        let copies = self.in_skipped().map(|parameter| {
            let Parameter {
                conditions, name, ..
            } = parameter;
            let copy = self.copy_in_skipped(name);
            quote_here! { #(#conditions)* let #name = #copy.get(); }
        });
        quote_here! { { let _ = skipped; #(#copies)* #given } }
    }

    /// What is returned upon an `error`.
    fn failed(&self) -> TokenStream {
        let output = self.output();
        if let None | Some(OnError::Return) = self.args.on_error {
            return quote_here! { <#output as __leader::FromLeaderError>::from_leader_error(error) };
        }
        // Of what is opaque nobody can know whether it can say an error: as if it could not.
        let says_error = (!is_opaque(&output)).then(|| quote_here! { SaysError as _, });
        let skipped = self.skipped();
        quote_here! {
            {
                use __leader::{#says_error LogsError as _};
                match (&__leader::Probe::<#output>::new()).failed(error) {
                    ::core::result::Result::Ok(value) => value,
                    ::core::result::Result::Err(skipped) => #skipped,
                }
            }
        }
    }

    /// The closure that makes the body, once there is a lease.
    fn body(&self, body: &Body) -> TokenStream {
        let output = self.output();
        let kept = self.item.kept(self.shape);
        let keep = kept.iter().map(|(conditions, name)| {
            quote_here! {
                #(#conditions)*
                #[allow(clippy::used_underscore_binding)]
                let _ = &#name;
            }
        });
        let keep: TokenStream = keep.collect();
        if self.shape.wrap == Wrap::Async {
            // The dead return tells rustc the type, so that the body's values are coerced and its mistakes reported as
            // in any function.
            let block = body.block_after(quote_here! {
                if false {
                    return __leader::never::<#output>();
                }
                #keep
            });
            return quote_here! { move || async move #block };
        }
        let copies = copied(self.brief);
        let block = body.block_after(quote_here! {
            #copies
            #keep
        });
        let returned = self.shape.returned.as_ref();
        let returned = returned.map(|returned| quote_here!(-> #returned));
        quote_here! { move || #returned #block }
    }

    fn name(&self) -> TokenStream {
        let name = match &self.args.name {
            Some(Name::Literal(literal, pattern)) if pattern.placeholders.is_empty() => {
                quote!(#literal)
            }
            Some(Name::Literal(literal, _)) => quote_here!(::std::format!(#literal)),
            Some(Name::Expr(expr)) => quote!(#expr),
            None => quote_here!(""),
        };
        quote_here! { let name = __leader::name(#name); }
    }

    /// `elector = ..`, or the parameter of that name.
    fn given_elector(&self) -> Option<Given> {
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
struct Given {
    /// When it is, in the words of `cfg`; always, if there are none.
    conditions: Option<TokenStream>,
    elector: TokenStream,
}

/// `let elector = ..`, a `Result`, of the given elector as `taken`, else of the current one.
fn current_or(
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
fn kept(given: &TokenStream) -> TokenStream {
    quote_here! {
        {
            use __leader::Keep as _;
            (#given).keep_elector()
        }
    }
}

/// The copies under the names of what they were made of, as their parameters were written.
fn copied<'b>(parameters: impl IntoIterator<Item = &'b Parameter<'b>>) -> TokenStream {
    let copied = parameters.into_iter().map(
        |Parameter {
             conditions,
             mutability,
             name,
         }| {
            quote_here! { #(#conditions)* let #mutability #name = #name.get(); }
        },
    );
    copied.collect()
}

/// Whether a type says nothing of what it is, but in the error of a `Result`.
fn is_opaque(ty: &Type) -> bool {
    match ty {
        Type::Infer(_) => true,
        Type::Path(path) => {
            let is_result = path
                .path
                .segments
                .last()
                .is_some_and(|last| last.ident == "Result");
            !is_result && names(ty.to_token_stream(), "_")
        }
        _ => names(ty.to_token_stream(), "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a person sees who expands a function.
    fn shown(args: &str, item: &str, most_lines: usize) -> String {
        let expanded = expand(args.parse().unwrap(), &item.parse().unwrap());
        let file = syn::parse2(expanded).expect("the expansion is Rust");
        let shown = prettyplease::unparse(&file);
        let lines = shown.lines().count();
        assert!(lines <= most_lines, "{lines} lines:\n{shown}");
        shown
    }

    #[test]
    fn the_expansion_of_a_one_line_function_fits_on_one_screen() {
        let shown = shown(
            r#"name = "report:{tenant}", lease = "10s", auto_extend"#,
            "async fn report(tenant: &str) -> Result<Option<u8>, Error> { Ok(Some(1)) }",
            50,
        );
        let expected = include_str!("expanded.txt");
        assert!(shown == expected, "`expanded.txt` should read:\n{shown}");
    }

    #[test]
    fn that_of_every_shape_and_policy_is_not_much_longer() {
        let returned = [
            "async fn f(a: &str) -> Result<(), E>",
            "fn f(a: &str) -> impl Future<Output = Result<(), E>>",
            "fn f(a: &str) -> BoxFuture<'static, Result<(), E>>",
            "fn f(a: &str) -> BoxStream<'static, Result<u8, E>>",
            "fn f(a: &str) -> impl Stream<Item = u8> + use<>",
        ];
        for signature in returned {
            for policy in ["return", "skip", "run"] {
                let args =
                    format!(r#"name = "x:{{a}}", elector = E, auto_extend, on_error = "{policy}""#);
                shown(&args, &format!("{signature} {{ a.go() }}"), 75);
            }
        }
    }
}
