//! Which constraints clash, and what is said of them.

use super::*;

fn pin(position: usize, ipu: usize) -> Constraint {
    Constraint::order(
        Rule::Pin { position, ipu },
        format!("--pin {position}={ipu}"),
    )
}

fn cut(after: usize) -> Constraint {
    Constraint::order(Rule::CutAfter(after), format!("--cut-after {after}"))
}

fn no_cut(after: usize) -> Constraint {
    Constraint::order(Rule::NoCutAfter(after), format!("--no-cut-after {after}"))
}

fn together(first: usize, last: usize) -> Constraint {
    let source = format!("--together {first},{last}");
    Constraint::order(Rule::Together { first, last }, source)
}

/// What is said of these constraints, for 8 positions and 4 IPUs.
fn said(constraints: &[Constraint]) -> Option<String> {
    find(constraints, 8, 4).map(|conflict| conflict.to_string())
}

fn assert_said(constraints: &[Constraint], begin: &str) {
    let said = said(constraints).unwrap();
    assert!(said.starts_with(begin), "{said}");
}

#[test]
fn orders_that_some_split_obeys_do_not_clash() {
    assert_eq!(said(&[]), None);
    let most = [pin(0, 0), pin(3, 3), pin(7, 3), no_cut(5), together(4, 6)];
    assert_eq!(said(&most), None);
    assert_eq!(
        said(&[pin(2, 1), pin(2, 1), cut(0), cut(0), no_cut(1)]),
        None
    );
    assert_eq!(said(&[cut(0), cut(3), cut(6)]), None);
}

#[test]
fn one_order_alone_may_be_too_much() {
    assert_said(&[pin(7, 4)], "--pin 7=4 cannot be obeyed: IPUs are");
    assert_said(
        &[pin(2, 3)],
        "--pin 2=3 cannot be obeyed: 3 cuts needed before it, but 2",
    );
    assert_said(&[pin(0, 1)], "--pin 0=1 cannot be obeyed");
}

#[test]
fn a_cut_is_not_both_required_and_forbidden() {
    let expected = "--cut-after 3 clashes with --no-cut-after 3:";
    assert_said(&[no_cut(3), cut(3)], expected);
    let expected = "--cut-after 3 clashes with --together 4,2:";
    assert_said(&[together(4, 2), cut(3)], expected);
}

#[test]
fn pins_rise_with_the_layers() {
    let expected = "--pin 5=1 clashes with --pin 3=2:";
    assert_said(&[pin(5, 1), pin(3, 2)], expected);
    let expected = "--pin 3=2 clashes with --pin 3=1:";
    assert_said(&[pin(3, 2), pin(3, 1)], expected);
}

#[test]
fn pins_leave_room_for_the_cuts_between_them() {
    let expected = "--pin 4=3 clashes with --pin 3=1: 2 cuts needed";
    assert_said(&[pin(3, 1), pin(4, 3)], expected);
    let expected = "--pin 4=2 clashes with --together 3,4 (with --pin 2=0):";
    assert_said(&[pin(2, 0), together(3, 4), pin(4, 2)], expected);
    let expected = "--pin 3=0 clashes with --cut-after 2:";
    assert_said(&[cut(2), pin(3, 0)], expected);
    let expected = "--pin 6=2 clashes with --pin 4=2 (with --cut-after 5):";
    assert_said(&[pin(4, 2), cut(5), pin(6, 2)], expected);
}

#[test]
fn there_are_ipus_for_all_cuts() {
    let expected = "--cut-after 6 clashes with --cut-after 4 (with --cut-after 2, --cut-after 0): 4 cuts asked for where the IPUs leave room for 3";
    assert_said(&[cut(0), cut(2), cut(4), cut(6)], expected);
    let expected = "--pin 5=3 clashes with --cut-after 6:";
    assert_said(&[pin(5, 3), cut(6)], expected);
    assert_eq!(
        find(&[cut(1)], 8, 1).map(|conflict| conflict.second),
        Some(None)
    );
}
