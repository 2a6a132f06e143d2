# What the scripts about results/records share; to be read by them, not run.

table=results/records/records.csv
readme=results/records/README.md
data=${SPILLBENCH_DATA:-datasets/external}/cpmcm2025a
# Another binary than that of this tree may be named.
spillbench=${SPILLBENCH:-target/release/spillbench}

build() {
    [ -n "${SPILLBENCH:-}" ] || cargo build --quiet --release --package spillbench-cli
}

# plan_of GRAPH OBJECTIVE: the folder of its plan.
plan_of() {
    echo "results/records/$2/$1"
}

# number KEY: the number of the first such key of the JSON on standard input.
number() {
    sed -n "s/^ *\"$1\": \\([0-9.]*\\),*\$/\\1/p" | head -n 1
}

# measure GRAPH OBJECTIVE FOLDER: the value of the plan in a folder, or a failure when it is not valid.
measure() {
    "$spillbench" check "$data/$1.json" --plan "$3" >/dev/null || { echo "$1 $2: not valid" >&2; return 1; }
    case $2 in
        movement) "$spillbench" check "$data/$1.json" --plan "$3" --json | number extra_movement ;;
        # The search knows the rule of one live buffer in each exclusive cache, too.
        peak)
            peak=$("$spillbench" optimize "$data/$1.json" --objective peak --start "$3" --evaluations 1 --json | number start)
            [ -n "$peak" ] || { echo "$1 peak: two buffers in an exclusive cache" >&2; return 1; }
            echo "$peak"
            ;;
    esac
}

# bound GRAPH OBJECTIVE: what no plan is below; for movement as far as a certificate proves it.
bound() {
    certificate=results/bounds/$1-every-order.json
    case $2 in
        movement)
            [ -f "$certificate" ] || { echo 0; return; }
            "$spillbench" optimize "$data/$1.json" --bound-file "$certificate" --evaluations 1 --json | number bound
            ;;
        peak) "$spillbench" optimize "$data/$1.json" --objective peak --evaluations 1 --json | number bound ;;
    esac
}

# gap VALUE BOUND: how far the value may be from the best, in per cent of the value.
gap() {
    awk -v value="$1" -v bound="$2" 'BEGIN { printf "%.1f%%", (value > bound) ? (value - bound) * 100 / value : 0 }'
}

# markdown TABLE: the table as the README shows it.
markdown() {
    awk -F, '
        function grouped(n,   text) {
            if (n !~ /^[0-9]+$/) return n
            text = ""
            while (length(n) > 3) { text = "," substr(n, length(n) - 2) text; n = substr(n, 1, length(n) - 3) }
            return n text
        }
        NR == 1 { print "| graph | objective | published | ours | bound | gap | time (s) | search |"
                  print "|---|---|---:|---:|---:|---:|---:|---|"; next }
        { printf "| %s | %s | %s | %s | %s | %s | %s | `%s` |\n", $1, $2, grouped($3), grouped($4), grouped($5), $6, $7, $8 }
    ' "$1"
}

# rewrite_readme: puts the table into the README, in place of the one that is there.
rewrite_readme() {
    written=$(mktemp)
    awk '!/^\|/' "$readme" | awk -v table="$(markdown "$table")" '{ print } /^<!-- table -->$/ { print table }' >"$written"
    cat "$written" >"$readme"
    rm -f "$written"
}
