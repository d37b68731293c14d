//! Memory of tiles, reserves, and corrections.

use super::Page;
use super::open;

impl Page {
    fn fields(&mut self) -> [String; 2] {
        self.value("['memory', 'reserve'].map((one) => $('#what-if-' + one).value)")
    }

    /// Checks that the command line has these options.
    #[track_caller]
    fn has_options(&mut self, options: &str) {
        let command = self.command();
        assert!(command.contains(&format!(" {options} ")), "{command}");
    }
}

#[test]
fn memory_and_what_is_kept_free_of_it_make_the_limit() {
    let mut page = or_skip!(open("popart-bert-inference", "--num-ipus=4 --reserve=2%"));
    assert_eq!(page.fields(), ["638976", "12780"]);
    page.check();
    page.has_options("--mem-per-tile=638976 --reserve=12780");
    page.try_value("reserve", "50001");
    page.has_options("--reserve=50001");
    page.try_value("memory", "700000");
    page.has_options("--mem-per-tile=700000 --reserve=50001");
    // A reserve that leaves nothing is rejected.
    let before = page.command();
    for wrong in ["700000", "-1", "0.5"] {
        page.try_value("reserve", wrong);
        assert!(page.is("!$('#what-if-reserve').validity.valid"), "{wrong}");
        assert_eq!(page.command(), before, "{wrong}");
    }
    page.try_value("reserve", "0");
    assert!(!page.command().contains("--reserve"));
    // An empty field has the value of the run.
    page.try_value("reserve", "");
    page.try_value("memory", "");
    page.try_value("ipus", "3");
    page.has_options("--mem-per-tile=638976 --reserve=12780");
    page.try_button("reset");
    assert_eq!(page.fields(), ["638976", "12780"]);
}

#[test]
fn memories_that_differ_by_ipu_can_have_another_reserve() {
    let memories = "--objective=peak --mem-per-tile=638976,600000,638976,600000";
    for (reserve, entered, limits) in [
        // If each IPU has a reserve of its own, the command line has the limits.
        ("2%", "", "626196,588000,626196,588000"),
        ("1000", "1000", "638976,600000,638976,600000 --reserve=1000"),
    ] {
        let options = format!("{memories} --reserve={reserve}");
        let mut page = or_skip!(open("popart-bert-inference", &options));
        assert_eq!(page.fields(), ["", entered]);
        page.check();
        page.has_options(&format!("--mem-per-tile={limits}"));
        page.try_value("reserve", "4096");
        page.has_options("--reserve=4096");
        page.press_cut(0, "Delete");
        page.check();
        page.try_value("ipus", "3");
        page.try_value("memory", "800000");
        page.has_options("--mem-per-tile=800000 --reserve=4096");
    }
}
