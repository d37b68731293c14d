//! Cases of files that surprise a first run, with the messages about them.

/// Cases by kind of surprise. Below the name of each are the steps that make its files, and runs with
/// parts of their messages; the head of `first_run` says how to write both.
pub const ROWS: [&str; 6] = [
    FOLDERS,
    OTHER_FILES,
    CONTEXTS,
    PROFILES,
    MISSING_LAYERS,
    NAMES,
];

const FOLDERS: &str = "
    the folder of a profile
        copy training-pipeline
        $ touch archive.a profile.pop_cache
        note of . --solve --num-ipus=4 => Reading ... profile.pop
    a profile one folder below, with its contexts above
        copy training-pipeline
        $ mkdir training; mv profile.pop training
        note of . --solve --num-ipus=4 => Reading ... training/profile.pop
    several engines, of which one can be split
        copy training-pipelined a
        copy training-pipeline b
        note of . --solve --num-ipus=4 => Reading ... b/profile.pop
    several engines that all can be judged
        copy training-pipelined a
        copy training-pipeline b
        copy training-pipeline c
        sql c/profile.pop DELETE FROM vars_info
        $ mkdir d; echo 'no profile' > d/profile.pop
        error 2 of . --fit
            there are 4 profiles below this folder; give one of them:
            a/profile.pop --fit  4 IPUs, with lowered variables, executed
            b/profile.pop --fit  1 IPU, with lowered variables
            c/profile.pop --fit  1 IPU, without lowered variables
            d/profile.pop --fit  the file is not an SQLite database
    an empty folder
        error 3 of . --solve => no profile.pop in this folder ... it is empty; give the folder that
    a folder with other files
        $ touch archive.a debug.cbor
        error 3 of . --solve => it has archive.a and debug.cbor; give ... autoReport.directory
";

const OTHER_FILES: &str = "
    the archive of compiled code
        $ printf '!<arch>\\nname/' > archive.a
        error 3 of archive.a --solve
            archive.a: ... an archive of compiled code ... give the profile.pop
    PopVision's cache
        copy poplar-mlp
        $ cp profile.pop profile.pop_cache
        error 3 of profile.pop_cache --solve
            profile.pop_cache: ... PopVision ... give the profile.pop
    the two files swapped
        copy poplar-mlp
        error 3 of debug.cbor --solve
            debug.cbor: ... looks like CBOR ... give profile.pop first and debug.cbor second
        error 3 of debug.cbor profile.pop --solve => give profile.pop first and debug.cbor second
    other files in place of the profile
        copy poplar-mlp
        $ echo '# This is no profile.' > text; touch empty
        sql other CREATE TABLE notes (note TEXT)
        error 3 of text debug.cbor --solve => text: the file is not an SQLite database
        error 3 of empty debug.cbor --solve => empty: the file is empty
        error 3 of other debug.cbor --solve
            other: the file is an SQLite database, but not a profile: it has no table `version_info`
        error 3 of missing debug.cbor --solve => missing: it cannot be read: No such file
    the same without contexts, which is the second problem
        $ echo '# This is no profile.' > text
        error 3 of text --layer-breakdown => text: the file is not an SQLite database
        error 3 of missing --layer-breakdown => missing: it cannot be read: No such file
    other files in place of the contexts
        copy poplar-mlp
        $ echo '# This is no profile.' > text; touch empty
        sql other CREATE TABLE notes (note TEXT)
        error 3 of profile.pop text --solve => text: ... a text file
        error 3 of profile.pop empty --solve => empty: the file is empty
        error 3 of profile.pop other --solve => other: ... an SQLite database
        error 3 of profile.pop missing --solve => missing: ... No such file
        error 3 of profile.pop . --solve => Is a directory
        error 3 of profile.pop profile.pop --solve
            profile.pop: ... give profile.pop first and debug.cbor second
";

const CONTEXTS: &str = r"
    the contexts of another compilation
        copy poplar-mlp
        $ cp $FIXTURES/tied-weights/debug.cbor .
        error 3 of profile.pop --solve
            debug.cbor: the debug file cannot be trusted: it belongs to another compilation
            --allow-incomplete
        warning of profile.pop --list-layers --allow-incomplete
            another compilation than the profile: of 89
    some contexts are missing
        copy poplar-mlp
        contexts drop_some
        error 3 of profile.pop --solve
            debug.cbor: the debug file cannot be trusted: contexts that programs and
            refer to and that are missing: ... copy debug.cbor again ... --allow-incomplete
        warning of profile.pop --solve --num-ipus=4 --allow-incomplete
            cannot be trusted: contexts that programs
    no contexts at all, as in two files of public repositories
        copy poplar-mlp
        $ printf '\242\150contexts\237\377\153stringTable\200' > debug.cbor
        error 3 of profile.pop --solve
            debug.cbor: ... it has no contexts ... autoReport.outputDebugInfo
    a pipeline with the contexts of another compilation
        copy training-pipelined
        $ cp $FIXTURES/tied-weights/debug.cbor .
        warning of profile.pop --fit
            layers on IPUs are left out
            debug.cbor: the debug file cannot be trusted: it belongs to another compilation
            --allow-incomplete
    a pipeline of which some contexts are missing
        copy training-pipelined
        contexts drop_some
        warning of profile.pop --fit
            layers on IPUs are left out
            debug.cbor: the debug file cannot be trusted: contexts that programs
            --allow-incomplete
    a pipeline with no contexts at all
        copy training-pipelined
        $ printf '\242\150contexts\237\377\153stringTable\200' > debug.cbor
        warning of profile.pop --fit
            layers on IPUs are left out ... debug.cbor: it has no contexts
            autoReport.outputDebugInfo
";

const PROFILES: &str = "
    a format before SQLite
        copy poplar-mlp
        sql profile.pop UPDATE version_info SET major = 2
        error 3 of profile.pop --solve
            report format 2.8.0 ... popliner reads only format 3 ... record it with such an SDK
    a format that came later
        copy poplar-mlp
        sql profile.pop UPDATE version_info SET major = 4
        error 3 of profile.pop --solve
            report format 4.8.0 ... popliner reads only format 3 ... use a popliner that reads
    an older format
        copy poplar-mlp
        sql profile.pop UPDATE version_info SET minor = 1
        warning of profile.pop --solve --num-ipus=4
            report format 3.1.0 ... only 3.8 (Poplar 3.3) ... record the profile with
    several IPUs
        copy training-pipelined
        error 3 of profile.pop --solve
            compiled for 4 IPUs ... compile the whole model for one IPU
            judge it as it is with --fit
    replicas of one IPU each
        copy poplar-mlp
        sql profile.pop UPDATE target_info SET num_ipus = 2, num_replicas = 2
        warning of profile.pop --solve --num-ipus=4
            2 identical replicas ... compile without replication
    recomputation, where stages keep more
        copy training-pipeline
        contexts recompute
        warning of profile.pop --solve --num-ipus=4 --recompute=none
            recorded with recomputation ... --recompute none keeps more
            autoRecomputation = popart.RecomputationType.NoRecompute ... --recompute layer
    weights of class 2, which is dead at steps 2 to 4 while the host copies
        copy poplar-mlp
        sql profile.pop UPDATE eq_classes SET is_always_live = 0 WHERE id = 2
        sql profile.pop DELETE FROM eq_class_step WHERE eq_class_id = 2
        sql profile.pop INSERT INTO eq_class_step VALUES (2, 0, 2), (2, 5, 207)
        sql profile.pop INSERT INTO memory_not_always_live_by_step_and_ipu VALUES (0, 0, 5659824)
        sql profile.pop INSERT INTO memory_not_always_live_by_step_and_ipu VALUES (0, 2, -5659824)
        sql profile.pop INSERT INTO memory_not_always_live_by_step_and_ipu VALUES (0, 5, 5659824)
        warning of profile.pop --solve --num-ipus=4
            280 variables with 5,659,824 bytes
            all 207 steps except at most 3, between step 2 and step 4
            do not count as always live
    a profile without lowered variables
        copy poplar-mlp
        sql profile.pop DELETE FROM vars_info
        error 3 of profile.pop --solve
            profile.pop: ... POPLAR_ENGINE_OPTIONS ... autoReport.all
            autoReport.outputLoweredVars
    a profile without their table
        copy poplar-mlp
        sql profile.pop DROP TABLE vars_info
        error 3 of profile.pop --solve => profile.pop: ... autoReport.outputLoweredVars
";

const MISSING_LAYERS: &str = r#"
    the layers of calls, in plain Poplar
        outlined poplar
        warning of profile.pop --layer-name-regex=Layer(\d+)/project
            operation 'Layer0/project' is called from 6 places ... the number of layers found is 1
            each layer calls its own function
    the same in TensorFlow
        outlined tensorflow
        warning of profile.pop --layer-name-regex=blocks/(\d+)/conv2
            is called from 6 places ... optimizations.enable_graph_outlining to False
    the same in PopART
        outlined popart
        warning of profile.pop --layer-name-regex=Layer(\d+)/FF/Gelu
            is called from 6 places ... POPART_POPLINER_OUTLINER_REGEX ... enableOutlining to False
    the same in PopTorch
        outlined poptorch
        warning of profile.pop --layer-name-regex=layer/(\d+)/intermediate/Gelu
            is called from 6 places ... options._Popart.set("enableOutlining", False)
"#;

const NAMES: &str = r"
    names that the default does not know
        copy poplar-mlp
        renamed Layer Unit
        note of profile.pop --solve --num-ipus=4
            Layers: 9 layers by the modules of the model (embed, Unit0, Unit1, ..., loss), which
            describe it better than the default --layer-name-regex
        note of profile.pop --list-layers => Layers: 9 layers by the modules of the model
    a regex that matches nothing
        copy poplar-mlp
        error 2 of profile.pop --solve --layer-name-regex=nowhere
            no operation matched the layer regex nowhere, so there are no layers to split between
            set --layer-name-regex to auto, which finds 9 layers by the modules of the model (embed,
    a regex that finds few of the layers
        copy training-pipeline
        warning of profile.pop --list-layers --layer-name-regex=FF/(\d+)
            --layer-name-regex 'FF/(\d+)' finds 2 layers with ... but the modules of the model are
            set --layer-name-regex to auto
    numbers that are used twice
        copy training-pipeline
        renamed Layer3 Layer0 Layer4 Layer1 Layer5 Layer2
        note of profile.pop --list-layers => Layer0@1, Layer1@1,
";
