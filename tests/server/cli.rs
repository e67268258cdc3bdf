//! Replies as redis-cli shows them at its prompt.

use redis::Value;

/// The lines of a reply; an error is its text.
pub fn shown(reply: &Result<Value, String>) -> Vec<String> {
    match reply {
        Ok(value) => lines(value),
        Err(error) => vec![format!("(error) {error}")],
    }
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Array(elements) if elements.is_empty() => vec!["(empty array)".into()],
        Value::Array(elements) => numbered(elements),
        Value::Int(number) => vec![format!("(integer) {number}")],
        Value::BulkString(bytes) => vec![quoted(bytes)],
        Value::SimpleString(text) => vec![text.clone()],
        Value::Okay => vec!["OK".into()],
        Value::Nil => vec!["(nil)".into()],
        other => panic!("no page shows such a reply: {other:?}"),
    }
}

/// Elements behind their numbers, which are as wide as the last one; what an element has on further
/// lines stands below its first.
fn numbered(elements: &[Value]) -> Vec<String> {
    let width = elements.len().to_string().len();
    let mut all = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let mut before = format!("{:>width$}) ", index + 1);
        for line in lines(element) {
            all.push(format!("{before}{line}"));
            before = " ".repeat(before.len());
        }
    }
    all
}

fn quoted(bytes: &[u8]) -> String {
    let escaped = bytes.iter().map(|byte| match byte {
        b'"' => "\\\"".into(),
        b'\\' => "\\\\".into(),
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        7 => "\\a".into(),
        8 => "\\b".into(),
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[test]
fn replies_are_shown_as_redis_cli_shows_them() {
    let text = |bytes: &[u8]| Value::BulkString(bytes.to_vec());
    let pair = Value::Array(vec![text(b"a"), Value::Array(vec![Value::Int(-1), Value::Nil])]);
    let mut eleven = vec![pair, Value::Array(vec![]), Value::Okay];
    eleven.resize(11, Value::SimpleString("PONG".into()));
    let shown_lines = shown(&Ok(Value::Array(eleven)));
    let expected = [
        " 1) 1) \"a\"",
        "    2) 1) (integer) -1",
        "       2) (nil)",
        " 2) (empty array)",
        " 3) OK",
        " 4) PONG",
    ];
    assert_eq!(shown_lines[..6], expected);
    assert_eq!(shown_lines[12], "11) PONG");
    let escaped = shown(&Ok(text(b"a\"\\\n\r\t\x07\x08 ~\x7f\xff\0")));
    assert_eq!(escaped, [r#""a\"\\\n\r\t\a\b ~\x7f\xff\x00""#]);
    assert_eq!(shown(&Err("ERR no".into())), ["(error) ERR no"]);
}
