//! Each language has words for whatever can happen, and what is on the page changes with the language.

use leader_browser_tests::{Page, Window, on_the_page};
use serde_json::json;

/// Where the library's codes are.
const ERRORS: &str = include_str!("../../../../leader-core/src/error.rs");

/// Each code that `as_str` of this type gives.
fn codes(kind: &str) -> Vec<&'static str> {
    let (_, from) = ERRORS
        .split_once(&format!("impl {kind} {{"))
        .expect("the type");
    let (_, from) = from.split_once("fn as_str").expect("its codes");
    let (body, _) = from.split_once("\n    }\n").expect("their end");
    let codes: Vec<_> = body.split('"').skip(1).step_by(2).collect();
    assert!(codes.len() > 5, "{codes:?}");
    codes
}

fn is_korean(text: &str) -> bool {
    text.contains(|letter| ('\u{ac00}'..='\u{d7a3}').contains(&letter))
}

#[tokio::test]
async fn each_failure_and_each_loss_has_words_in_both_languages() {
    on_the_page(&[], Window::WIDE, async |page| {
        let codes = [codes("BackendKind"), codes("LossReason")].concat();
        let script = format!(
            "const {{ t, speak }} = await import('/words.js');
             return {}.map((code) => ['ko', 'en'].map((lang) => {{ speak(lang); return t(`why.${{code}}`) }}))",
            json!(codes)
        );
        let words: Vec<[String; 2]> =
            serde_json::from_value(page.ask(&script).await).expect("pairs of text");
        for (code, [korean, english]) in codes.iter().zip(words) {
            assert!(is_korean(&korean), "{code}: {korean}");
            assert!(!english.is_empty() && !english.contains('_') && !is_korean(&english), "{code}: {english}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_no_code_is_said_as_it_is() {
    on_the_page(&[], Window::WIDE, async |page| {
        let script = "const { result } = await import('/words.js');
            return result({ action: 'failed', result: 'other', detail: 'no elector. Pass one.' })";
        assert_eq!(page.ask(script).await, "no elector. Pass one.: an error");
    })
    .await;
}

#[tokio::test]
async fn a_refused_setting_is_said_in_the_language_in_use() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("lang-ko").await;
        page.fill("lease_ms-number", "61").await;
        page.fill("slots-number", "5").await;
        for (id, korean) in [
            ("lease_ms-refusal", "0.01 초에서 60.0 초까지 가능합니다."),
            ("slots-refusal", "1에서 4까지 가능합니다."),
        ] {
            page.says(id, korean).await;
            let text = page.find(id).await.text().await;
            assert_eq!(text.expect("a text"), korean);
        }
        page.click("lang-en").await;
        page.says("lease_ms-refusal", "Takes 0.01 s to 60.0 s")
            .await;
        page.says("slots-refusal", "Takes 1 to 4").await;
        // The browser tells the console of each answer that is an error.
        page.forgive().await;
    })
    .await;
}

/// Lets the workbench answer the page's next request with this refusal.
async fn refused(page: &Page, body: serde_json::Value) {
    page.ask(&format!(
        "const real = window.fetch;
         window.fetch = async () => {{ window.fetch = real; return new Response(JSON.stringify({body}), {{ status: 409 }}) }};
         const {{ post }} = await import('/dom.js'); await post('/api/candidates/a', {{ action: 'stop' }})"
    ))
    .await;
}

#[tokio::test]
async fn a_refusal_with_a_code_is_said_in_the_language_in_use() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("lang-ko").await;
        let error = "candidate `a` is not running; start it first";
        refused(page, json!({ "error": error, "code": "not_running" })).await;
        page.says("problem", "실행 중인 후보가 아닙니다").await;
        page.click("lang-en").await;
        page.says("problem", "That candidate is not running").await;
        refused(
            page,
            json!({ "error": "no thread could be started", "code": "unheard_of" }),
        )
        .await;
        page.says("problem", "no thread could be started").await;
    })
    .await;
}

#[tokio::test]
async fn a_story_that_cannot_be_played_is_said_in_korean_with_the_reason_as_it_is() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("lang-ko").await;
        let script = "
            const { makeScenarios, sayScenarios, showScenario } = await import('/scenarios.js');
            makeScenarios(document.getElementById('scenarios'), [{ name: 'failover', unavailable: 'no redis-server' }]);
            sayScenarios();
            showScenario({ name: 'failover', step: 1, steps: 4, over: true, failure: 'it did not start' });
            return ['scenario-failover-text', 'scenario-caption'].map((id) => document.getElementById(id))
              .map((place) => [place.firstChild.textContent, place.querySelector('[lang=en]')?.textContent])";
        let said: Vec<(String, Option<String>)> =
            serde_json::from_value(page.ask(script).await).expect("pairs of text");
        let quoted: Vec<_> = said.iter().map(|(_, quoted)| quoted.as_deref()).collect();
        assert_eq!(quoted, [Some("no redis-server"), Some("it did not start")]);
        assert!(said[0].0.contains("여기서는 할 수 없음"), "{said:?}");
        assert!(said[1].0.contains("이야기를 끝까지"), "{said:?}");
    })
    .await;
}

#[tokio::test]
async fn both_modes_call_the_same_thing_by_the_same_korean_word() {
    on_the_page(&[], Window::WIDE, async |page| {
        let script = "
            const { t, speak } = await import('/words.js');
            speak('ko');
            return [t('act.thawed'), t('legend.refused'), t('res.stale')]";
        // As `Action::words` and `Row::result` have them.
        assert_eq!(
            page.ask(script).await,
            json!(["재개", "낡은 쓰기 거절", "거절됨"])
        );
        for word in ["거부", "해동", "오래된"] {
            let has =
                format!("return (await (await fetch('/words.js')).text()).includes('{word}')");
            assert_eq!(page.ask(&has).await, false, "{word}");
        }
    })
    .await;
}
