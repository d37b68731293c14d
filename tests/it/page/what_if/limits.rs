//! Memory of tiles, reserves, and corrections.

use super::Page;
use crate::support::profile;
use serde_json::{Value, json};

impl Page {
    fn fields(&mut self) -> Value {
        let fields =
            "['memory', 'reserve'].map((one) => document.getElementById('what-if-' + one).value)";
        self.value(fields)
    }
}

#[test]
fn memory_and_what_is_kept_free_of_it_make_the_limit() {
    let options = ["--solve", "--num-ipus=4", "--reserve=2%"];
    let mut page = or_skip!(Page::open(&profile("popart-bert-inference"), &options));
    assert_eq!(page.fields(), json!(["638976", "12780"]));
    page.check();
    assert!(
        page.command()
            .contains(" --mem-per-tile=638976 --reserve=12780 ")
    );
    page.enter("reserve", "50001");
    assert!(page.command().contains(" --reserve=50001 "));
    page.enter("memory", "700000");
    assert!(
        page.command()
            .contains(" --mem-per-tile=700000 --reserve=50001 ")
    );
    // A reserve that leaves nothing is rejected.
    let before = page.command();
    for wrong in ["700000", "-1", "0.5"] {
        page.enter("reserve", wrong);
        let is_wrong = "!document.getElementById('what-if-reserve').validity.valid";
        assert_eq!(page.value(is_wrong), json!(true), "{wrong}");
        assert_eq!(page.command(), before, "{wrong}");
    }
    page.enter("reserve", "0");
    assert!(!page.command().contains("--reserve"));
    // An empty field has the value of the run.
    page.enter("reserve", "");
    page.enter("memory", "");
    page.enter("ipus", "3");
    assert!(
        page.command()
            .contains(" --mem-per-tile=638976 --reserve=12780 ")
    );
    page.click("reset");
    assert_eq!(page.fields(), json!(["638976", "12780"]));
}

#[test]
fn memories_that_differ_by_ipu_can_have_another_reserve() {
    let memories = "--mem-per-tile=638976,600000,638976,600000";
    for (reserve, entered, option) in [
        // If each IPU has a reserve of its own, the command line has the limits.
        (
            "--reserve=2%",
            "",
            " --mem-per-tile=626196,588000,626196,588000 --check",
        ),
        (
            "--reserve=1000",
            "1000",
            " --mem-per-tile=638976,600000,638976,600000 --reserve=1000 ",
        ),
    ] {
        let options = ["--solve", "--objective=peak", memories, reserve];
        let mut page = or_skip!(Page::open(&profile("popart-bert-inference"), &options));
        assert_eq!(page.fields(), json!(["", entered]));
        page.check();
        assert!(page.command().contains(option), "{}", page.command());
        page.enter("reserve", "4096");
        assert!(page.command().contains(" --reserve=4096 "));
        page.press(0, "Delete");
        page.check();
        page.enter("ipus", "3");
        page.enter("memory", "800000");
        assert!(
            page.command()
                .contains(" --mem-per-tile=800000 --reserve=4096 ")
        );
    }
}
