//! Escapes names that come from files. There is one function for each language in which results are
//! written.
//!
//! | language | function |
//! |---|---|
//! | text on a terminal, and comments of any language | [`printable`] |
//! | JSON | [`json`]; inside a page [`json_in_script`] |
//! | YAML and Python | [`quoted`] |
//! | TSV and CSV, which spreadsheets open | [`cell`] |
//! | Markdown | [`markdown`] |
//! | command lines | [`shell`] |
//!
//! `report::html` escapes the HTML of the page. The scripts of the page insert names only as text
//! nodes and attributes, after escaping the names with their own version of [`printable`].

/// Returns whether a terminal or viewer may act on `c` instead of showing it: control characters,
/// line ends, characters that change the text direction or have no width, and noncharacters.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes a name for a terminal or a comment: control characters and other characters that a
/// terminal acts on become escapes such as `\n`, so the result is one line.
pub fn printable(name: &str) -> String {
    replaced(name, |c| {
        is_obeyed(c).then(|| c.escape_default().to_string())
    })
}

/// Escapes the characters in a JSON text on which a terminal or viewer would act (see
/// [`is_obeyed`]). `text` must be JSON that `serde_json` wrote: there, DEL and non-ASCII characters
/// occur only in strings, where escapes are allowed.
pub fn json(text: String) -> String {
    if text.bytes().all(|byte| byte < 0x7f) {
        return text;
    }
    replaced(&text, |c| (c > '~' && is_obeyed(c)).then(|| in_utf16(c)))
}

/// Escapes a JSON text for a `script` element, so that nothing in the text can end the element or
/// begin a comment. As for [`json`], `text` must be JSON that `serde_json` wrote.
pub fn json_in_script(text: String) -> String {
    replaced(&json(text), |c| {
        matches!(c, '<' | '>' | '&').then(|| in_utf16(c))
    })
}

/// Returns `text` in double quotes, as a string that is valid in YAML and in Python.
pub fn quoted(text: &str) -> String {
    let text = replaced(text, |c| match c {
        '"' | '\\' => Some(format!("\\{c}")),
        c if !is_obeyed(c) => None,
        c if c <= '\u{ffff}' => Some(in_utf16(c)),
        c => Some(format!("\\U{:08x}", u32::from(c))),
    });
    format!("\"{text}\"")
}

/// Returns `text` as a table cell that neither a spreadsheet nor a terminal executes: a formula
/// gets `'` at the start, as OWASP recommends. Numbers are unchanged. The CSV writer adds quotes.
pub fn cell(text: &str) -> String {
    let signs = [
        '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ];
    let is_formula = text.starts_with(signs) && !is_number(text);
    format!("{}{}", if is_formula { "'" } else { "" }, printable(text))
}

/// Returns whether a table cell is a number, with an optional sign and point. Spreadsheets execute
/// other cells that begin with a sign as formulas.
fn is_number(cell: &str) -> bool {
    cell.strip_prefix(['-', '+'])
        .unwrap_or(cell)
        .splitn(2, '.')
        .all(is_digits)
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Escapes text so that Markdown shows it literally, never as a table cell, link, HTML or mention.
/// ASCII letters, digits and spaces are unchanged; text with any other character becomes a `<code>`
/// element in which most punctuation is written as HTML entities.
pub fn markdown(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == ' ';
    let text = printable(text);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    // Some Markdown viewers turn text that contains `www.` into a link, so all dots in such text
    // are escaped.
    let harmless = if text.to_ascii_lowercase().contains("www.") {
        "/-,"
    } else {
        "/-,."
    };
    let stays = |c: char| is_plain(c) || !c.is_ascii() || harmless.contains(c);
    let text = replaced(&text, |c| {
        (!stays(c)).then(|| format!("&#{};", u32::from(c)))
    });
    format!("<code>{text}</code>")
}

/// Quotes a word for a shell, if it needs quotes. Characters that a terminal acts on, such as line
/// ends, need `$'...'`, which bash and zsh support.
pub fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    if !word.contains(is_obeyed) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let word = replaced(word, |c| match c {
        '\'' | '\\' => Some(format!("\\{c}")),
        c => is_obeyed(c).then(|| {
            c.to_string()
                .bytes()
                .map(|byte| format!("\\{byte:03o}"))
                .collect()
        }),
    });
    format!("$'{word}'")
}

/// Returns `c` as JSON escapes it: one or two `\u` escapes of four digits.
fn in_utf16(c: char) -> String {
    c.encode_utf16(&mut [0; 2])
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

/// Replaces each character of `text` by the result of `escape`, and keeps the character if the
/// result is `None`.
fn replaced(text: &str, escape: impl Fn(char) -> Option<String>) -> String {
    let mut replaced = String::with_capacity(text.len());
    for c in text.chars() {
        match escape(c) {
            Some(escaped) => replaced.push_str(&escaped),
            None => replaced.push(c),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_obeyed_is_written_out() {
        assert_eq!(
            printable("a\u{1b}[31mb\n\u{9b}é\u{2028}\u{202e}"),
            "a\\u{1b}[31mb\\n\\u{9b}é\\u{2028}\\u{202e}"
        );
    }

    #[test]
    fn json_reads_back_and_has_nothing_that_others_obey() {
        let name = "\u{1b}\n\u{7f}\u{85}é\u{2028}\u{202e}\u{feff}\u{ffff}\u{e0041}\u{1f680}</a>&";
        for escape in [json, json_in_script] {
            let written = escape(serde_json::to_string(name).unwrap());
            assert!(!written.contains(is_obeyed), "{written}");
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), name);
        }
        let written = json_in_script(serde_json::to_string(name).unwrap());
        assert!(!written.contains(['<', '>', '&']), "{written}");
    }

    #[test]
    fn formulas_and_control_sequences_are_disarmed_and_numbers_are_not() {
        let cells = [
            ("=1+1", "'=1+1"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("\t=1", "\\t=1"),
            ("\r=1", "\\r=1"),
            ("-", "'-"),
            ("-12", "-12"),
            ("-3.25", "-3.25"),
            ("+7", "+7"),
            ("a=b", "a=b"),
            ("", ""),
            ("\u{1b}[31mred\u{9b}", "\\u{1b}[31mred\\u{9b}"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            ("naïve\n# name", "naïve\\n# name"),
        ];
        for (text, expected) in cells {
            assert_eq!(cell(text), expected);
        }
    }

    #[test]
    fn markdown_shows_text_as_it_is() {
        assert_eq!(markdown("Layer 3"), "Layer 3");
        assert_eq!(markdown("a/b_1"), "<code>a/b&#95;1</code>");
        let text = markdown("|`<b>\n@all #1 [x](http://y) **z** \\");
        for sign in "|`\n@[]()*\\:_".chars() {
            assert!(!text.contains(sign), "{sign:?} in {text}");
        }
        assert!(text.starts_with("<code>&#124;&#96;&#60;b&#62;&#92;n&#64;all &#35;1 "));
        assert_eq!(markdown("www.b.c"), "<code>www&#46;b&#46;c</code>");
        assert_eq!(markdown("0.1"), "<code>0.1</code>");
        assert_eq!(markdown(""), "<code></code>");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(shell("model/wte:0"), "model/wte:0");
        assert_eq!(shell("my weight"), "'my weight'");
        assert_eq!(shell("it's"), r"'it'\''s'");
        assert_eq!(shell(""), "''");
        assert_eq!(shell("it's\n\u{2028}\\"), r"$'it\'s\012\342\200\250\\'");
    }

    #[test]
    fn yaml_and_python_read_the_same() {
        assert_eq!(
            quoted("a\"\\\n\u{9b}\u{2028}\u{e0041}é"),
            r#""a\"\\\u000a\u009b\u2028\U000e0041é""#
        );
    }
}
