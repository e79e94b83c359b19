//! What stands at the end of help texts and manual pages: exit codes and examples.

/// The exit codes of a run, before the examples of a command.
macro_rules! exit_codes {
    ($($examples:literal),+) => {
        concat!(
            "\
Exit codes:
  0    conformant, or partial (with --require-complete: conformant only)
  1    a MUST check failed, or was blocked by what the CCM did
  2    wrong usage or configuration, or the output cannot be written;
       nothing was started
  3    the environment (Docker, cluster, cloud, image) failed and no MUST check
       failed, or the report could not be written
  4    no check was selected, or none of those can be shown here
  5    conformant or partial, but a private check of yours failed
  130  interrupted

",
            $($examples),+
        )
    };
}

pub(super) const EXIT_CODES: &str = exit_codes!(
    "\
Example:
  ccm-conformance run --cluster embedded --only NODE-INIT-01"
);

pub(super) const RUN_EXAMPLES: &str = exit_codes!(
    "\
Examples:
  ccm-conformance run                         # the reference CCM
  ccm-conformance run --profile ./acme --binary ./acme-ccm --cluster embedded
  ccm-conformance run --profile ./acme --image acme-ccm:v1 --only 'SVC-*'
  ccm-conformance run --quiet --max-fail 1 --output json"
);

pub(super) const PLAN_EXAMPLES: &str = "\
Exit codes:
  0  the run can start
  2  wrong usage or configuration: 'run' would refuse it in the same words
  3  the environment lacks something, or the cloud's driver does not start
  4  no check is selected

Examples:
  ccm-conformance plan --profile ./acme
  ccm-conformance plan --cluster kind --suite routes";

pub(super) const LIST_EXAMPLES: &str = "\
Examples:
  ccm-conformance list --suite routes --level must
  ccm-conformance list --only 'SVC-UPD-*'
  ccm-conformance list --profile load-balancer --output json";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  ccm-conformance explain NODE-INIT-01        # a check
  ccm-conformance explain SVC-UPD-01          # a row, with all its checks
  ccm-conformance explain M-SV-07             # a mutant, and who must notice it
  ccm-conformance explain faults              # what some checks need";

pub(super) const DEV_EXAMPLES: &str = "\
Exit codes:
  0    ended with the key q
  2    wrong usage or configuration; nothing was started
  3    the environment failed
  130  interrupted

Examples:
  ccm-conformance dev --profile ./acme --binary ./acme-ccm
  ccm-conformance dev --binary ./acme-ccm --build 'make acme-ccm'";

pub(super) const DOCS_EXAMPLES: &str = "\
Examples:
  ccm-conformance docs                        # the list of pages
  ccm-conformance docs tutorial | less";

pub(super) const MERGE_EXAMPLES: &str = "\
Exit codes:
  those of 'run', for the merged result; 2 also if the parts are not of one run

Example:
  ccm-conformance merge part-1 part-2 part-3 --out merged";

pub(super) const REPLAY_EXAMPLES: &str = "\
Exit codes: those of the run, see 'run --help'; 2 if the events cannot be read

Example:
  ccm-conformance replay conformance-results/events.jsonl --out again";

pub(super) const ATTEST_EXAMPLES: &str = "\
Example:
  ccm-conformance attest conformance-results/report.yaml --key key.pem > a.json";

pub(super) const IMAGE_EXAMPLES: &str = "\
Example:
  ccm-conformance image --out image.tar && docker load --input image.tar";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(ccm-conformance completions bash)
  ccm-conformance completions fish > \\
    ~/.config/fish/completions/ccm-conformance.fish";

pub(super) const MAN_EXAMPLES: &str = "\
Example:
  ccm-conformance man --out man && man -l man/ccm-conformance-run.1";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  ccm-conformance doctor --cluster kind
  ccm-conformance doctor --output json";

pub(super) const CLEAN_EXAMPLES: &str = "\
Examples:
  ccm-conformance clean                 # what ended runs left
  ccm-conformance clean --all --yes     # also what belongs to running ones";

pub(super) const CLUSTER_EXAMPLES: &str = "\
Examples:
  ccm-conformance cluster embedded --kubeconfig kc --nodes 3
  ccm-conformance cluster embedded --kubeconfig kc --cloud hcloud";

pub(super) const INIT_EXAMPLES: &str = "\
Example:
  ccm-conformance init --manifests deploy/ --name acme    # writes ./acme";

pub(super) const VERIFY_EXAMPLES: &str = "\
Exit codes:
  that of the run, if the report is genuine and no option left checks out
  1  it is not genuine, a MUST check failed, or options left checks out, such
     as '--only' and '--quick' ('relaxed' in the report)
  2  wrong usage, or a file cannot be read

Example:
  ccm-conformance verify conformance-results/report.yaml";

pub(super) const COMPARE_EXAMPLES: &str = "\
Exit codes:
  0  no check is worse
  1  a check is worse
  2  a report cannot be read, or the page cannot be written

Examples:
  ccm-conformance compare old/report.yaml new/report.yaml
  ccm-conformance compare old/report.yaml new/report.yaml --output json";

pub(super) const EXPLORE_EXAMPLES: &str = "\
Exit codes:
  0    the exploration ended (with --require-clean: and found nothing)
  1    something was found (with --require-clean or --replay), or the CCM does
       not start to work
  2    wrong usage or configuration, or the output cannot be written;
       nothing was started
  3    the environment failed, or a replay did not meet its fault
  130  interrupted; what was found until then is kept

Examples:
  ccm-conformance explore --profile ./acme --binary ./acme-ccm --budget 10m
  ccm-conformance explore --scenario service-life --pattern answer-lost
  ccm-conformance explore --replay \\
    conformance-results/explore/findings/01-service-life-down.yaml";

pub(super) const CONTROLS_EXAMPLES: &str = "\
Exit codes:
  0    every mutant failed where it must, everything correct passed
  1    a mutant was missed, or a variant or adversary ended wrongly
  2    wrong usage or configuration; nothing was started
  3    the environment failed
  130  interrupted

Examples:
  ccm-conformance controls --list
  ccm-conformance controls --cluster embedded --mutant M-NI-01";

pub(super) const EXPORT_EXAMPLES: &str = "\
Examples:
  cd conformance-results
  ccm-conformance export report.yaml --format sarif --out ccm.sarif
  ccm-conformance export report.yaml --format prow --out artifacts-of-the-job
  ccm-conformance export report.yaml --format otlp | curl --data-binary @- \\
    --header 'Content-Type: application/json' http://localhost:4318/v1/traces";

pub(super) const TREND_EXAMPLES: &str = "\
Exit codes:
  0  the reports were compared, whatever changed
  2  a report cannot be read

Example:
  ccm-conformance trend nightly/*/report.yaml";

pub(super) const BISECT_EXAMPLES: &str = "\
Exit codes:
  0    found: the first bad commit is printed
  2    wrong usage, or the good commit fails, or the bad commit passes
  3    the commit cannot be found, because commits around it cannot be built
       or judged
  130  interrupted

Example, in a checkout of the CCM:
  ccm-conformance bisect --good v1.3.0 --bad main --binary acme-ccm \\
    --build 'go build -o acme-ccm ./cmd/acme-ccm' \\
    --check SVC-UPD-01.node-port -- --profile ./acme --cluster embedded";

pub(super) const COVERAGE_EXAMPLES: &str = "\
Exit codes:
  0  every row has a check or a reason why not, and every check a mutant
  1  otherwise: the list ends with the objections
  2  wrong usage

Examples:
  ccm-conformance coverage
  ccm-conformance coverage --output json";

pub(super) const SCHEMA_EXAMPLES: &str = "\
Example:
  ccm-conformance schema profile > profile.schema.json";

pub(super) const PACK_EXAMPLES: &str = "\
Example:
  ccm-conformance submission pack conformance-results/report.yaml \\
    --vendor acme --product 'Acme CCM' --product-version v1.2.3 \\
    --url https://acme.example/ccm";

pub(super) const SUBMISSION_CHECK_EXAMPLES: &str = "\
Example:
  ccm-conformance submission check docs/reports/1.36/acme";

pub(super) const SUBMISSION_LIST_EXAMPLES: &str = "\
Examples:
  ccm-conformance submission list docs/reports
  ccm-conformance submission list docs/reports --write docs/reports/README.md";

pub(super) const SITE_EXAMPLES: &str = "\
Example:
  ccm-conformance submission site docs/reports --out site";

pub(super) const OPENAPI_EXAMPLES: &str = "\
Example:
  ccm-conformance driver openapi > driver.openapi.json";
