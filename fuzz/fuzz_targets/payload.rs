//! Messages on a name's channel: any text, or any bytes, or a value that is neither.
#![no_main]

use fred::types::Value;
use leader_redis::fuzzing;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    fuzzing::message(&Value::Bytes(bytes.to_vec().into()));
    if let Ok(text) = str::from_utf8(bytes) {
        fuzzing::message(&Value::String(text.into()));
    }
    if let Ok(value) = leader_fuzz::value(&mut Unstructured::new(bytes), 3) {
        fuzzing::message(&value);
    }
});
