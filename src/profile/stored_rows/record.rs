//! The format of a row: the types of all values, then the values.

use super::StoredColumn;
use rusqlite::types::ValueRef;

/// Where the wanted columns are in the records of a table.
#[derive(Debug)]
pub(super) struct WantedColumns {
    /// By place, up to the last wanted one: which of the wanted it is.
    wanted: Vec<Option<u8>>,
    /// By wanted column.
    is_rowid: Vec<bool>,
}

/// A value of a record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StoredField {
    /// SQLite's number for its type and length.
    kind: u64,
    /// Where in the payload it is.
    start: usize,
    is_rowid: bool,
}

impl WantedColumns {
    pub(super) fn of(columns: &[StoredColumn]) -> Self {
        let last = columns.iter().map(|column| column.place).max();
        let mut wanted = vec![None; last.map_or(0, |last| last + 1)];
        for (number, column) in (0..).zip(columns) {
            wanted[column.place] = Some(number);
        }
        Self {
            wanted,
            is_rowid: columns.iter().map(|column| column.is_rowid).collect(),
        }
    }

    /// Room for the fields of a record.
    pub(super) fn fields(&self) -> Fields {
        let field = |&is_rowid| StoredField {
            is_rowid,
            ..StoredField::default()
        };
        Fields {
            list: self.is_rowid.iter().map(field).collect(),
            head: Vec::new(),
            end: 0,
            are_last: false,
        }
    }

    /// Finds the wanted columns in a payload; `None` where that is left to SQLite. A record
    /// may be shorter than its table, when columns were added later, and a damaged one may
    /// have a value of its own for the rowid.
    #[inline]
    pub(super) fn find(&self, payload: &[u8], fields: &mut Fields) -> Option<()> {
        // Many rows have values of the same kinds as the one before.
        if fields.head.is_empty() || !payload.starts_with(&fields.head) {
            self.find_anew(payload, fields)?;
        }
        let rest = payload.len().checked_sub(fields.end)?;
        // SQLite refuses a record whose values end before it does.
        (rest == 0 || !fields.are_last).then_some(())
    }

    fn find_anew(&self, payload: &[u8], fields: &mut Fields) -> Option<()> {
        fields.head.clear();
        let (length, mut at) = varint(payload)?;
        let mut start = usize::try_from(length).ok()?;
        let head = payload.get(..start)?;
        for wanted in &self.wanted {
            let (kind, used) = varint(head.get(at..)?)?;
            at += used;
            if let Some(number) = wanted {
                let field = &mut fields.list[usize::from(*number)];
                if field.is_rowid && kind != 0 {
                    // SQLite never stores a value there, and reads none.
                    return None;
                }
                (field.kind, field.start) = (kind, start);
            }
            start = match SHORT.get(kind as usize) {
                Some(&length) => start + usize::from(length?),
                None => start.checked_add(usize::try_from((kind - 12) / 2).ok()?)?,
            };
        }
        fields.head.extend_from_slice(head);
        (fields.end, fields.are_last) = (start, at == head.len());
        Some(())
    }
}

/// The fields of a record.
pub(super) struct Fields {
    /// By wanted column.
    list: Vec<StoredField>,
    /// The bytes in front of the values, which tell their kinds.
    head: Vec<u8>,
    /// Where the last wanted value ends in the payload, and whether no others follow it.
    end: usize,
    are_last: bool,
}

/// Bytes of the values of all kinds that take one byte; `None` for those that are reserved.
const SHORT: [Option<u8>; 128] = {
    let mut lengths = [None; 128];
    let numbers = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];
    let mut kind = 0;
    while kind < lengths.len() {
        lengths[kind] = match kind {
            0..=9 => Some(numbers[kind]),
            10 | 11 => None,
            _ => Some((kind as u8 - 12) / 2),
        };
        kind += 1;
    }
    lengths
};

/// A row whose fields were found.
pub(crate) struct Record<'r> {
    rowid: i64,
    payload: &'r [u8],
    fields: &'r [StoredField],
}

impl<'r> Record<'r> {
    #[inline]
    pub(super) fn new(rowid: i64, payload: &'r [u8], fields: &'r Fields) -> Self {
        Self {
            rowid,
            payload,
            fields: &fields.list,
        }
    }

    /// The value of a wanted column, by its number among them.
    #[inline(always)]
    pub(crate) fn value(&self, column: usize) -> ValueRef<'r> {
        let StoredField {
            kind,
            start,
            is_rowid,
        } = self.fields[column];
        let value_bytes = |length: usize| &self.payload[start..start + length];
        match kind {
            0 if is_rowid => ValueRef::Integer(self.rowid),
            0 => ValueRef::Null,
            1..=6 => {
                let length = SHORT[kind as usize].unwrap_or(0);
                ValueRef::Integer(integer(value_bytes(length.into())))
            }
            7 => match f64::from_bits(integer(value_bytes(8)) as u64) {
                // As SQLite has it.
                number if number.is_nan() => ValueRef::Null,
                number => ValueRef::Real(number),
            },
            8 | 9 => ValueRef::Integer(kind as i64 - 8),
            _ if kind % 2 == 0 => ValueRef::Blob(value_bytes((kind as usize - 12) / 2)),
            _ => ValueRef::Text(value_bytes((kind as usize - 13) / 2)),
        }
    }
}

/// A big-endian integer with its sign.
#[inline]
fn integer(bytes: &[u8]) -> i64 {
    let sign = match bytes.first() {
        Some(first) if first & 0x80 != 0 => -1,
        _ => 0,
    };
    bytes
        .iter()
        .fold(sign, |value, &byte| value << 8 | i64::from(byte))
}

/// The number at the start of `bytes`, and of how many bytes it is: groups of seven bits,
/// all but the last with the high bit set, and a ninth byte of eight bits.
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let &first = bytes.first()?;
    if first < 0x80 {
        return Some((first.into(), 1));
    }
    long_varint(bytes)
}

fn long_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(8) {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, index + 1));
        }
    }
    bytes.get(8).map(|&last| (value << 8 | u64::from(last), 9))
}
