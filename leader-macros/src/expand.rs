//! The function that is written in place of the annotated one. The signature stays; the body moves into a closure that
//! leader-core calls once there is a lease.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Path, Type};

use self::elector::{Given, current_or, kept};
use crate::args::{self, Args, Mistakes, Name};
use crate::check;
use crate::item::{Body, Item, Parameter};
use crate::shape::{Kind, Shape, Wrap};

/// Tokens whose local names neither see the user's nor are seen by them.
macro_rules! quote_here {
    ($($tokens:tt)*) => { quote::quote_spanned! { proc_macro2::Span::mixed_site()=> $($tokens)* } };
}

mod elector;
mod options;
mod returned;

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
