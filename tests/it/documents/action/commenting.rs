//! Tests the step of the action that posts the report to the pull request. Here, `gh` is a script
//! that keeps comments as files; it needs `jq`, whose language the step uses.

use super::{Job, has, job::values};

/// A script for `gh` that answers as GitHub's interface does, as far as the step uses it.
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

impl Job {
    /// Runs the step that comments, and returns its output.
    fn comment(&self) -> String {
        let context = "{github.event.pull_request.number: 7, GITHUB_REPOSITORY: o/model}";
        let mut context = values(context);
        let comments = self.path("comments").display().to_string();
        context.insert("COMMENTS".to_owned(), comments);
        let wish = values("comment: true");
        let run = self.step("Post the report to the pull request", &wish, &context);
        run.exits(0).out.clone()
    }

    /// Returns the texts of all comments except the one by a person.
    fn posted(&self) -> Vec<String> {
        let texts = (1..).map(|id| self.read(&format!("comments/{id}.json")));
        let bodies = texts.take_while(|text| !text.is_empty()).map(|text| {
            let comment: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            comment["body"].as_str().expect("a text").to_owned()
        });
        bodies.collect()
    }

    /// Writes the files that the step before leaves: a report with this name, and outputs.
    fn report(&self, name: &str, text: &str) {
        self.write(&format!("{name}.md"), text);
        self.write("outputs", &format!("report<<END\n{name}\nEND\n"));
    }
}

/// Opens a pull request with a comment by a person, which looks like a comment of the action; `None`
/// if the test is skipped.
fn pull_request() -> Option<Job> {
    let job = Job::new().filter(|_| has("jq"))?;
    job.fake("gh", GH);
    let person = r#"{"id": 0, "user": {"login": "p"}, "body": "<!-- popliner: report -->"}"#;
    job.write("comments/0.json", person);
    Some(job)
}

#[test]
fn each_report_has_a_comment_that_later_runs_replace() {
    let job = or_skip!(pull_request());
    for round in ["first", "second"] {
        for name in ["report", "a \"$(b)\" --> c", "fit"] {
            job.report(name, &format!("{round} of {name}\n"));
            assert_eq!(job.comment(), "");
        }
    }
    let expected = [
        "<!-- popliner: report -->\nsecond of report\n",
        "<!-- popliner: a____b___-__c -->\nsecond of a \"$(b)\" --> c\n",
        "<!-- popliner: fit -->\nsecond of fit\n",
    ];
    assert_eq!(job.posted(), expected);
}

#[test]
fn a_long_report_is_cut_at_the_end_of_a_line() {
    let job = or_skip!(pull_request());
    job.report("report", &"ä line of the report\n".repeat(5000));
    job.comment();
    let posted = job.posted().remove(0);
    assert!(posted.chars().count() < 65_536 && posted.len() > 50_000);
    let end = "ä line of the report\n\nThe rest is in the summary of the run.\n";
    assert!(posted.ends_with(end), "{}", posted.len());
}

#[test]
fn without_permission_there_is_a_warning() {
    let job = or_skip!(pull_request());
    job.write("comments/forbidden", "");
    job.report("report", "text\n");
    let out = job.comment();
    assert!(out.starts_with("::warning title=popliner::"), "{out}");
    assert_eq!(job.posted(), [""; 0]);
}
