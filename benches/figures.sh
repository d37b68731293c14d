# Computes and prints the figures of benches/big.sh, which reads this file, from the runs and
# messages in $RESULTS.

# calculate [STATEMENT; ...] EXPRESSION: prints the value of the expression, in awk.
calculate() { awk "BEGIN { ${1%;*}; printf \"%.3f\", ${1##*;} }"; }

# median: prints the median of the numbers on standard input.
median() {
    sort -g | awk '{ v[NR] = $1 } END {
        if (NR % 2) print v[(NR + 1) / 2]; else print (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

fastest() { sort -g | awk 'NR == 1'; }

seconds() { cut -d' ' -f1 "$RESULTS/$1.runs" | fastest; }
median_of() { cut -d' ' -f1 "$RESULTS/$1.runs" | median; }
gigabytes() { calculate "$(cut -d' ' -f2 "$RESULTS/$1.runs" | sort -g | tail -n 1) * 1024 / 1e9"; }

# duration NAME MESSAGE: prints the sum of the times in the messages of -vv of the last run, in
# seconds; a line is MESSAGE and then a time such as 519.36ms or 2.23s.
duration() {
    sed -n "s/^$2 \([0-9.]*\)\(s\|ms\|µs\)\$/\1 \2/p" "$RESULTS/$1.log" |
        awk '{ sum += $1 * ($2 == "s" ? 1 : $2 == "ms" ? 1e-3 : 1e-6) } END { print sum + 0 }'
}

# line TEXT VALUE LIMIT UNIT: prints a line that ends with PASS if the value is at most the limit.
line() {
    local verdict
    verdict=$(awk "BEGIN { print ($2 <= $3) ? \"PASS\" : \"MISS\" }")
    printf '%-58s %8.3f %-3s at most %6.3f  %s\n' "$1" "$2" "$4" "$3" "$verdict"
}

# peak NAME: prints the peak memory for the table in gigabytes, or a dash.
peak() { if measures_memory; then gigabytes "$1"; else echo -; fi; }

memory_line() {
    if measures_memory; then
        line "$1" "$(gigabytes "$2")" "$3" GB
    else
        printf '%-58s not measured: there is no /usr/bin/time\n' "$1"
    fi
}
