//! [`Call`]: what a script is to be run on.

use std::fmt;
use std::ops::Range;

use fred::bytes::Bytes;
use fred::types::Value;
use leader_core::Token;

/// How many bytes stand before each word and say how many it has.
const LENGTH: usize = size_of::<usize>();

/// The keys and arguments of a script, as they go to the server.
///
/// They stand in one piece of memory. The client library hands a command on to a task of its own, and makes room anew for
/// each word that is not shared already.
#[derive(Clone)]
pub(crate) struct Call {
    /// Each behind its length. The first one says how many keys follow.
    words: Bytes,
    count: usize,
    keys: usize,
}

/// A [`Call`] as it is being written: first the keys, then the arguments.
pub(crate) struct Words {
    written: Vec<u8>,
    count: usize,
    keys: usize,
}

/// What a key of usual length and its arguments take.
const USUAL: usize = 128;

impl Words {
    /// Of a script on so many keys, the first of which decides the cluster slot.
    pub(crate) fn on(keys: usize) -> Self {
        Self::with_room(keys, 0)
    }

    /// As [`on`](Self::on), with a word of so many bytes among the others.
    pub(crate) fn with_room(keys: usize, bytes: usize) -> Self {
        let mut words = Self {
            written: Vec::with_capacity(USUAL * (keys + 1) + bytes),
            count: 0,
            keys,
        };
        words.push_number(keys as u64);
        words
    }

    pub(crate) fn push(&mut self, word: impl AsRef<[u8]>) {
        self.push_parts([word]);
    }

    /// One word of several parts.
    pub(crate) fn push_parts<const PARTS: usize>(&mut self, parts: [impl AsRef<[u8]>; PARTS]) {
        self.word(|words| {
            for part in parts {
                words.extend_from_slice(part.as_ref());
            }
        });
    }

    pub(crate) fn push_number(&mut self, number: impl Into<u64>) {
        self.word(|words| write_number(words, number.into()));
    }

    /// An empty word where there is none.
    pub(crate) fn push_slot(&mut self, slot: Option<u32>) {
        match slot {
            Some(slot) => self.push_number(slot),
            None => self.push(""),
        }
    }

    /// Two numbers, with a space between them, as one word.
    pub(crate) fn push_pair(&mut self, first: impl Into<u64>, second: impl Into<u64>) {
        self.word(|words| {
            write_number(words, first.into());
            words.push(b' ');
            write_number(words, second.into());
        });
    }

    /// As [`Token::to_hex`], without a text of its own.
    pub(crate) fn push_token(&mut self, token: Token) {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        self.word(|words| {
            for byte in token.as_bytes() {
                let digits = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
                words.extend_from_slice(&digits);
            }
        });
    }

    fn word(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.written.len() + LENGTH;
        self.written.extend_from_slice(&[0; LENGTH]);
        write(&mut self.written);
        let length = self.written.len() - begin;
        self.written[begin - LENGTH..begin].copy_from_slice(&length.to_ne_bytes());
        self.count += 1;
    }

    pub(crate) fn into_call(self) -> Call {
        Call {
            words: self.written.into(),
            count: self.count,
            keys: self.keys,
        }
    }
}

/// By hand: a batch of extensions has hundreds of numbers, and goes out twenty times a second.
fn write_number(words: &mut Vec<u8>, mut number: u64) {
    // As many as the largest number has.
    let mut digits = [b'0'; 20];
    let mut begin = digits.len();
    loop {
        begin -= 1;
        digits[begin] += (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    words.extend_from_slice(&digits[begin..]);
}

impl Call {
    /// What goes to the server behind the command: the script, and this.
    pub(super) fn of(&self, script: &'static str) -> Vec<Value> {
        let mut all = Vec::with_capacity(1 + self.count);
        all.push(Value::from_static_str(script));
        all.extend(self.ranges().map(|word| self.words.slice(word).into()));
        all
    }

    /// The first key, which decides the cluster slot; empty where there is none.
    pub(super) fn key(&self) -> &[u8] {
        let key = self.ranges().nth(1).filter(|_| self.keys > 0);
        let key = key.unwrap_or_default();
        &self.words[key]
    }

    /// Where the words stand.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let length = self.words.get(at..)?.first_chunk::<LENGTH>()?;
            let begin = at + LENGTH;
            at = begin + usize::from_ne_bytes(*length);
            Some(begin..at)
        })
    }
}

/// Without the words: the token is one of them.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("words", &self.count)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(call: &Call) -> Vec<Vec<u8>> {
        let values = call.of("script").into_iter();
        values
            .map(|word| word.into_owned_bytes().unwrap())
            .collect()
    }

    #[test]
    fn a_call_says_what_was_written() {
        let mut words = Words::on(2);
        words.push_parts(["leader:{", "a", "}:lease"]);
        words.push_slot(None);
        words.push_slot(Some(0));
        words.push_number(7_u32);
        words.push_number(1000_u64);
        words.push_number(u64::MAX);
        words.push(b"\xff\x00\r\n");
        words.push_pair(3_u32, 14_u32);
        let call = words.into_call();
        let expected: [&[u8]; 10] = [
            b"script",
            b"2",
            b"leader:{a}:lease",
            b"",
            b"0",
            b"7",
            b"1000",
            b"18446744073709551615",
            b"\xff\x00\r\n",
            b"3 14",
        ];
        assert_eq!(sent(&call), expected);
        assert_eq!(call.key(), b"leader:{a}:lease");
    }

    #[test]
    fn a_token_is_written_as_it_is_read_back() {
        for token in [Token::from_bytes([0x0f; 16]), Token::random()] {
            let mut words = Words::on(0);
            words.push_token(token);
            assert_eq!(sent(&words.into_call())[2], token.to_hex().as_bytes());
        }
    }

    #[test]
    fn a_call_without_keys_has_none() {
        assert_eq!(sent(&Words::on(0).into_call()), [&b"script"[..], b"0"]);
        let mut words = Words::on(0);
        words.push("an argument");
        assert_eq!(words.into_call().key(), b"");
    }

    #[test]
    fn a_call_keeps_its_words_to_itself() {
        let mut words = Words::on(1);
        words.push("a name");
        words.push_token(Token::random());
        assert_eq!(format!("{:?}", words.into_call()), "Call { words: 3, .. }");
    }
}
