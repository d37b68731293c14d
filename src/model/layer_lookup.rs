//! Finds the layer that a name stands for, in the forms in which frameworks print modules and
//! people write them: `bert.encoder.layer.3`, `model.encoder.layer[3]`, `encoder/3`, `layer.3`.

/// The layer that a name given by the user stands for, or why the name does not stand for exactly
/// one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// The name stands for exactly one layer, given by its index.
    Layer(usize),
    /// The name may stand for any of several layers, given by their indices.
    Ambiguous(Vec<usize>),
    /// The name stands for a module or an operation inside the layer with this index, and the
    /// layers cannot be divided so that one of them begins with it.
    Inside(usize),
    /// The name stands for no layer of the model.
    Unknown,
}

impl Named {
    /// Returns the index of the layer if the name stands for exactly one layer; otherwise `None`.
    pub fn layer(self) -> Option<usize> {
        match self {
            Self::Layer(layer) => Some(layer),
            _ => None,
        }
    }

    pub(crate) fn map(self, index: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Layer(layer) => Self::Layer(index(layer)),
            Self::Ambiguous(layers) => Self::Ambiguous(layers.into_iter().map(index).collect()),
            Self::Inside(layer) => Self::Inside(index(layer)),
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Finds the layer that `text` stands for. The first rule that fits any layer decides:
///
/// - The name of the layer is `text`.
/// - The whole path of the layer's module is `text`, or `text` without the name of the model at its
///   start ([`WHOLE`]).
/// - `text` is a part of this path, such as its end ([`PART`]).
///
/// `paths` has the module path of each layer; a path is empty or missing if unknown.
pub fn lookup(text: &str, names: &[String], paths: &[String]) -> Named {
    if let Some(layer) = names.iter().position(|name| name == text) {
        return Named::Layer(layer);
    }
    lookup_path(text, paths, &[WHOLE, PART].concat())
}

/// Finds the path in `paths`, the paths of layers or modules, that `text` stands for. `ways` are
/// ways to compare a text with a path, which are tried in order until any path matches. The result
/// holds the index of this path or, if several paths match, all their indices.
pub fn lookup_path(text: &str, paths: &[String], ways: &[Way]) -> Named {
    let wanted = modules(text);
    for agrees in ways {
        let found: Vec<usize> = (0..paths.len())
            .filter(|&layer| agrees(&modules(&paths[layer]), &wanted))
            .collect();
        match found.as_slice() {
            [] => {}
            &[layer] => return Named::Layer(layer),
            _ => return Named::Ambiguous(found),
        }
    }
    Named::Unknown
}

/// A way to compare a text with a module path, such as by its end. The arguments are the modules of
/// the path and the modules of the text.
pub type Way = fn(&[&str], &[&str]) -> bool;

/// Two ways in which a text names a module by its whole path: the text is the path, such as
/// `encoder.layer`, or the name of the model and the path, such as `bert.encoder.layer`.
pub const WHOLE: [Way; 2] = [
    |path, text| path == text,
    |path, text| !path.is_empty() && path.len() + 1 == text.len() && text.ends_with(path),
];

/// Ways in which a text stands for a part of a module path: the text is the end of the path, or the
/// text leaves out some modules of the path, such as a list of blocks, which the model never calls.
pub const PART: [Way; 2] = [
    |path, text| !text.is_empty() && path.ends_with(text),
    has_scope,
];
/// Splits a module path into names of modules: `a.b/c[3]` into `a`, `b`, `c` and `3`.
fn modules(path: &str) -> Vec<&str> {
    path.split(['.', '/', '[', ']'])
        .map(|module| module.trim_matches(['"', '\'', ' ']))
        .filter(|module| !module.is_empty())
        .collect()
}

/// Returns whether the text `wanted` names the last module of `path`, but leaves out modules before
/// it, as `encoder.1` does for `encoder.layer.1`. The text has at least two modules of the path, in
/// their order. The name of the model may stand before the first module of the path, as in
/// `bert.encoder.1`.
fn has_scope(path: &[&str], wanted: &[&str]) -> bool {
    let is_part = |wanted: &[&str]| {
        let mut left = path.iter();
        wanted.len() > 1
            && wanted.last() == path.last()
            && wanted
                .iter()
                .all(|module| left.any(|other| other == module))
    };
    let without_root = wanted.get(1..).unwrap_or_default();
    is_part(wanted) || without_root.first() == path.first() && is_part(without_root)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: [(&str, &str); 4] = [
        ("encoder.0", "bert.encoder.layer.0"),
        ("encoder.1", "bert.encoder.layer.1"),
        ("decoder.0", "bert.decoder.layer.0"),
        ("pooler", "bert/pooler"),
    ];

    fn found(text: &str) -> Named {
        let (names, paths): (Vec<_>, Vec<_>) = LAYERS
            .map(|(name, path)| (name.into(), path.into()))
            .into_iter()
            .unzip();
        lookup(text, &names, &paths)
    }

    #[test]
    fn a_layer_is_found_in_every_notation() {
        for text in [
            "encoder.1",
            "layer.1",
            "bert.encoder.layer.1",
            "bert/encoder/layer/1",
            "model.bert.encoder.layer[1]",
            "encoder.layer[1]",
            "bert/encoder/1",
            "model/bert/encoder/1",
            "'layer.1'",
        ] {
            assert_eq!(found(text), Named::Layer(1), "{text}");
        }
        assert_eq!(found("model.bert.pooler"), Named::Layer(3));
    }

    #[test]
    fn several_layers_and_none() {
        assert_eq!(found("layer.0"), Named::Ambiguous(vec![0, 2]));
        let (names, paths) = (["0", "1"], ["text.blocks.0", "image.text.blocks.0"]);
        let owned = |texts: [&str; 2]| texts.map(String::from);
        for (path, layer) in paths.into_iter().zip(0..) {
            let found = lookup(path, &owned(names), &owned(paths));
            assert_eq!(found, Named::Layer(layer), "{path}");
        }
        for text in [
            "",
            "layer",
            "encoder",
            "other.encoder.layer.1.x",
            "bert.2",
            "x.encoder.1",
        ] {
            assert_eq!(found(text), Named::Unknown, "{text}");
        }
    }
}
