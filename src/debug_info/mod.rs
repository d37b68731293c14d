//! `debug.cbor` as plain data: contexts, their chains and their names.
