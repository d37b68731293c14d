#!/usr/bin/env bash
# Posts the report as a comment on the pull request, in place of that of an earlier run.
# A step of action.yml, which sets the variables. Where it has no permission, as in a
# pull request from a fork, that is a warning.
set -euo pipefail

if [ "$COMMENT" != true ] || [ -z "$PULL_REQUEST" ] || [ -z "$REPORT" ] || [ ! -f "$REPORT.md" ]; then
    exit 0
fi

# Every report has a comment of its own, which begins with a mark that readers do not see.
name=$(printf '%s' "$REPORT" | tr -c 'A-Za-z0-9._/-' _ | tr -s -)
mark="<!-- popliner: $name -->"
comments=repos/$GITHUB_REPOSITORY/issues
body=$(mktemp)
trap 'rm -f "$body"' EXIT
# A comment has at most 65,536 characters.
awk -v mark="$mark" '
    BEGIN { print mark }
    (length_so_far += length($0) + 1) > 60000 { print "\nThe rest is in the summary of the run."; exit }
    { print }
' < "$REPORT.md" > "$body"

earlier() {
    gh api --paginate "$comments/$PULL_REQUEST/comments" --jq ".[]
        | select(.user.login == \"github-actions[bot]\" and (.body | startswith(\"$mark\"))) | .id"
}

post() {
    local ids
    ids=$(earlier) || return 1
    if [ -n "$ids" ]; then
        gh api --silent --method PATCH "$comments/comments/${ids%%$'\n'*}" --field "body=@$body"
    else
        gh api --silent --method POST "$comments/$PULL_REQUEST/comments" --field "body=@$body"
    fi
}

post || echo "::warning title=popliner::the report is not on the pull request, only in the summary; comments need the permission pull-requests: write"
