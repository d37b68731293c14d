//! The step that posts the report to the pull request. Here, `gh` is a script that keeps comments
//! as files; it needs `jq`, whose language the step uses.

use super::{Values, fake, run_action_step, values};
use crate::support::{piped, skip, try_finish};
use std::path::{Path, PathBuf};

/// Answers like GitHub's interface, as far as the step uses it.
const GH: &str = r#"
[ "$1" = api ] || exit 1
shift
method=GET
while [ $# -gt 0 ]; do
    case $1 in
        --paginate | --silent) ;;
        --method) method=$2; shift ;;
        --jq) filter=$2; shift ;;
        --field) body=${2#body=@}; shift ;;
        *) path=$1 ;;
    esac
    shift
done
echo "$method $path" >> "$COMMENTS/log"
[ ! -e "$COMMENTS/forbidden" ] || { echo 'HTTP 403' >&2; exit 1; }
write() {
    jq -n --rawfile body "$body" --argjson id "$1" \
        '{id: $id, user: {login: "github-actions[bot]"}, body: $body}' > "$COMMENTS/$1.json"
}
case "$method $path" in
    "GET repos/o/model/issues/7/comments") jq -s . "$COMMENTS"/*.json | jq -r "$filter" ;;
    "POST repos/o/model/issues/7/comments") write "$(ls "$COMMENTS"/*.json | wc -l)" ;;
    "PATCH repos/o/model/issues/comments/"*) write "${path##*/}" ;;
    *) echo "HTTP 404: $method $path" >&2; exit 1 ;;
esac
"#;

/// A pull request with a comment by a person, which looks like a comment of the action.
pub struct PullRequest {
    comments: PathBuf,
}

impl PullRequest {
    /// Makes the pull request in the folder in which the action runs; `None` if the test is
    /// skipped.
    pub fn new(folder: &Path) -> Option<Self> {
        if try_finish(piped("jq").arg("--version")).is_none() {
            skip("there is no jq");
            return None;
        }
        fake(folder, "gh", GH);
        let comments = folder.join("comments");
        std::fs::create_dir(&comments).expect("a folder");
        let person = r#"{"id": 0, "user": {"login": "p"}, "body": "<!-- popliner: report -->"}"#;
        std::fs::write(comments.join("0.json"), person).expect("a comment");
        Some(Self { comments })
    }

    /// Runs the step with these inputs, and returns its output.
    pub fn comment(&self, given: &Values, folder: &Path) -> String {
        let comments = self.comments.display().to_string();
        let context = values(&[
            ("github.event.pull_request.number", "7"),
            ("GITHUB_REPOSITORY", "o/model"),
            ("COMMENTS", &comments),
        ]);
        let step = "Post the report to the pull request";
        let run = run_action_step(step, given, &context, folder).expect("bash");
        assert_eq!(run.code, 0, "{run:?}");
        run.out
    }

    /// Returns the texts of all comments except the person's.
    pub fn posted(&self) -> Vec<String> {
        let files = (1..).map(|id| self.comments.join(format!("{id}.json")));
        let files = files.take_while(|file| file.exists());
        let bodies = files.map(|file| {
            let text = std::fs::read_to_string(file).expect("a comment");
            let comment: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            comment["body"].as_str().expect("a text").to_owned()
        });
        bodies.collect()
    }
}

/// Writes the files that the step before leaves: a report with this name, and outputs.
fn report(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(format!("{name}.md")), text).expect("a report");
    let output = format!("report<<END\n{name}\nEND\n");
    std::fs::write(folder.join("outputs"), output).expect("outputs");
}

#[test]
fn each_report_has_a_comment_that_later_runs_replace() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(pull_request) = PullRequest::new(folder) else {
        return;
    };
    let given = values(&[("comment", "true")]);
    for round in ["first", "second"] {
        for name in ["report", "a \"$(b)\" --> c", "fit"] {
            report(folder, name, &format!("{round} of {name}\n"));
            assert_eq!(pull_request.comment(&given, folder), "");
        }
    }
    let posted = pull_request.posted();
    assert_eq!(
        posted,
        [
            "<!-- popliner: report -->\nsecond of report\n",
            "<!-- popliner: a____b___-__c -->\nsecond of a \"$(b)\" --> c\n",
            "<!-- popliner: fit -->\nsecond of fit\n",
        ]
    );
}

#[test]
fn a_long_report_is_cut_at_the_end_of_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(pull_request) = PullRequest::new(folder) else {
        return;
    };
    report(folder, "report", &"ä line of the report\n".repeat(5000));
    pull_request.comment(&values(&[("comment", "true")]), folder);
    let posted = pull_request.posted().remove(0);
    assert!(posted.chars().count() < 65_536 && posted.len() > 50_000);
    let end = "ä line of the report\n\nThe rest is in the summary of the run.\n";
    assert!(posted.ends_with(end), "{}", posted.len());
}

#[test]
fn without_permission_there_is_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(pull_request) = PullRequest::new(folder) else {
        return;
    };
    std::fs::write(folder.join("comments/forbidden"), "").expect("a file");
    report(folder, "report", "text\n");
    let out = pull_request.comment(&values(&[("comment", "true")]), folder);
    assert!(out.starts_with("::warning title=popliner::"), "{out}");
    assert_eq!(pull_request.posted(), Vec::<String>::new());
}

#[test]
fn nothing_is_asked_without_a_wish_a_pull_request_or_a_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(pull_request) = PullRequest::new(folder) else {
        return;
    };
    let wish = values(&[("comment", "true")]);
    pull_request.comment(&wish, folder);
    report(folder, "report", "text\n");
    pull_request.comment(&Values::new(), folder);
    let step = "Post the report to the pull request";
    let run = run_action_step(step, &wish, &Values::new(), folder).expect("bash");
    assert_eq!(run.code, 0, "{run:?}");
    std::fs::remove_file(folder.join("report.md")).expect("a report");
    pull_request.comment(&wish, folder);
    assert!(!pull_request.comments.join("log").exists());
}
