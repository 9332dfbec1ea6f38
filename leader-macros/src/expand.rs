//! The function that is written in place of the annotated one. The signature stays; the body moves into a closure that
//! leader-core calls once there is a lease.

use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Error, LitStr, Path, Type, parse_quote_spanned};

use crate::args::{self, Args, Mistakes, Name, OnError, OnLost, Slots, Time};
use crate::check;
use crate::item::{Body, Item, Parameter};
use crate::mentions::mentions;
use crate::shape::{Kind, Shape, Wrap};

/// Tokens whose local names neither see the user's nor are seen by them.
macro_rules! quote_here {
    ($($tokens:tt)*) => { quote::quote_spanned! { proc_macro2::Span::mixed_site()=> $($tokens)* } };
}

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
        let guarded = match self.shape.wrap {
            Wrap::Boxed => quote_here! { ::std::boxed::Box::pin({ #guarded }) },
            Wrap::Async | Wrap::Bare => guarded,
        };
        quote_here! {
            use #krate::__private as __leader;
            #guarded
        }
    }

    fn async_fn(&self, body: &Body) -> TokenStream {
        let (name, options) = (self.name(), self.options());
        // Only looked at until there is a lease: the body may consume it.
        let elector = self.elector(|given| quote_here! { &(#given) });
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
        let (kept, elector) = match self.given_elector() {
            Some(given) => {
                let kept = kept(&given);
                let kept = quote_here! { let elector = #kept; };
                (
                    Some(kept),
                    quote_here! { ::core::result::Result::Ok(elector) },
                )
            }
            None => (None, quote_here! { __leader::current_elector() }),
        };
        let when_failing = self.when_failing();
        let copies = self.copies();
        let led = self.led(&self.body(body));
        quote_here! {
            #name
            #options
            #kept
            #copies
            async move {
                let stood = __leader::stand(#elector, name, options, #when_failing).await;
                #led
            }
        }
    }

    fn stream(&self, body: &Body) -> TokenStream {
        let (name, options) = (self.name(), self.options());
        let elector = self.elector(|given| kept(&given));
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
        quote_here! {
            #name
            #options
            #elector
            let last_items = #last_items;
            #copies
            __leader::guard_stream(elector, name, options, #when_failing, last_items, #body)
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

    fn copies(&self) -> TokenStream {
        let copies = self.brief.iter().map(
            |Parameter {
                 conditions, name, ..
             }| {
                quote_here! { #(#conditions)* let #name = __leader::Copied::of(#name); }
            },
        );
        copies.collect()
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
        let is_used = |parameter: &&Parameter<'_>| {
            mentions(given.to_token_stream(), parameter.name).is_some()
        };
        let copies = copied(self.brief.iter().filter(is_used));
        quote_here! { { let _ = skipped; #copies #given } }
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
        let keep = kept.iter().map(
            |Parameter {
                 conditions, name, ..
             }| {
                quote_here! {
                    #(#conditions)*
                    #[allow(clippy::used_underscore_binding)]
                    let _ = &#name;
                }
            },
        );
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

    /// `let elector = ..`, a `Result`, of the given elector as `kept` keeps it, or of the current one.
    fn elector(&self, kept: impl FnOnce(TokenStream) -> TokenStream) -> TokenStream {
        let Some(kept) = self.given_elector().map(kept) else {
            return quote_here! { let elector = __leader::current_elector(); };
        };
        quote_here! {
            let elector = #kept;
            let elector = ::core::result::Result::Ok(elector);
        }
    }

    /// `elector = ..`, or the parameter of that name.
    fn given_elector(&self) -> Option<TokenStream> {
        if let Some(elector) = &self.args.elector {
            return Some(quote!(#elector));
        }
        let is_parameter = self.item.parameters().iter().any(|name| name == "elector");
        is_parameter.then(|| {
            let elector = Ident::new("elector", Span::call_site());
            quote!(#elector)
        })
    }

    /// `let options = ..`, a `Result`.
    fn options(&self) -> TokenStream {
        let pattern = self.pattern();
        if let Some(options) = &self.args.options {
            let labelled = match (pattern, self.shape.wrap) {
                (Some(pattern), _) => {
                    quote_here! { __leader::labelled(options, #pattern) }
                }
                (None, Wrap::Async) => quote_here! { options },
                // Kept until the first poll, when the call is over.
                (None, Wrap::Bare | Wrap::Boxed) => {
                    quote_here! { ::core::clone::Clone::clone(options) }
                }
            };
            return quote_here! {
                let options: &__leader::LeaseOptions = #options;
                let options = ::core::result::Result::Ok(#labelled);
            };
        }
        let Settings { calls, is_fixed } = self.settings();
        let label = pattern.map(|pattern| quote_here!(.name_pattern(#pattern)));
        if is_fixed {
            quote_here! {
                let options = {
                    static OPTIONS: __leader::Options =
                        __leader::Options::new(|options| options #calls #label);
                    OPTIONS.get()
                };
            }
        } else {
            quote_here! { let options = __leader::LeaseOptions::builder() #calls #label .build(); }
        }
    }

    fn settings(&self) -> Settings {
        let args = self.args;
        let mut settings = Settings {
            calls: TokenStream::new(),
            is_fixed: true,
        };
        settings.time("wait", args.wait.as_ref());
        settings.time("lease", args.lease.as_ref());
        settings.time("min_lease", args.min_lease.as_ref());
        settings.time("max_tenure", args.max_tenure.as_ref());
        if let Some(flag) = &args.auto_extend {
            settings.is_fixed &= args::literal(flag).is_some();
            settings.calls.extend(quote_here!(.auto_extend(#flag)));
        }
        match &args.on_lost {
            None => {}
            Some(OnLost::Cancel) => settings
                .calls
                .extend(quote_here!(.on_lost(__leader::OnLost::Cancel))),
            Some(OnLost::Notify) => settings
                .calls
                .extend(quote_here!(.on_lost(__leader::OnLost::Notify))),
            Some(OnLost::Expr(expr)) => {
                settings.is_fixed = false;
                settings.calls.extend(quote_here!(.on_lost(#expr)));
            }
        }
        match &args.slots {
            None => {}
            Some(Slots::Literal(slots)) => {
                settings.calls.extend(quote_here!(.slots(#slots)));
            }
            Some(Slots::Expr(expr)) => {
                settings.is_fixed = false;
                settings.calls.extend(quote_here!(.slots(#expr)));
            }
        }
        settings
    }

    /// The label of spans, where the name is filled in from data.
    fn pattern(&self) -> Option<LitStr> {
        match &self.args.name {
            Some(Name::Literal(literal, pattern)) if !pattern.placeholders.is_empty() => {
                Some(literal.clone())
            }
            Some(Name::Expr(syn::Expr::Macro(call))) if call.mac.path.is_ident("format") => {
                let parse = |input: syn::parse::ParseStream<'_>| {
                    let literal = input.parse::<LitStr>()?;
                    input.parse::<TokenStream>()?;
                    Ok(literal)
                };
                syn::parse::Parser::parse2(parse, call.mac.tokens.clone()).ok()
            }
            _ => None,
        }
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
            !is_result && has_infer(ty.to_token_stream())
        }
        _ => has_infer(ty.to_token_stream()),
    }
}

fn has_infer(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == "_",
        TokenTree::Group(group) => has_infer(group.stream()),
        _ => false,
    })
}

/// The builder's calls, and whether they are the same for every call of the function.
struct Settings {
    calls: TokenStream,
    is_fixed: bool,
}

impl Settings {
    fn time(&mut self, key: &str, time: Option<&Time>) {
        let key = Ident::new(key, Span::mixed_site());
        match time {
            None => {}
            Some(Time::Literal(time, _)) => {
                let seconds = Literal::u64_unsuffixed(time.as_secs());
                let nanos = Literal::u32_unsuffixed(time.subsec_nanos());
                self.calls
                    .extend(quote_here!(.#key(::core::time::Duration::new(#seconds, #nanos))));
            }
            Some(Time::Expr(expr)) => {
                self.is_fixed = false;
                self.calls.extend(quote_here!(.#key(#expr)));
            }
        }
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
