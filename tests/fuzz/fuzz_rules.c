/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the table of facts that `doctor --facts` reads: rows whose fields lie in the text,
 * and end; or a message. */
#include "fuzz.h"
#include "preflight/rules.h"

static const char head[] = "kind,package,versions,where,needs,says,source\n";

static long n_rows, n_refused;

static void check_field(const pl_rules *rules, size_t n, const char *field)
{
    REQUIRE(field >= rules->text && field + strlen(field) <= rules->text + n);
    REQUIRE(strchr(field, '\n') == NULL);
}

static void use(const pl_rules *rules, size_t n)
{
    static const char *const words[] = {"x86_64", "cu126"};
    for (size_t i = 0; i < rules->n; i++) {
        const pl_rule *rule = &rules->items[i];
        const char *const fields[] = {rule->kind,  rule->package, rule->versions, rule->where,
                                      rule->needs, rule->says,    rule->source};
        for (size_t k = 0; k < PL_COUNT_OF(fields); k++)
            check_field(rules, n, fields[k]);
        REQUIRE(rule->kind[0] && rule->package[0] && rule->source[0]);
        (void)pl_rule_is_for(rule, words, PL_COUNT_OF(words));
        const pl_rule *found = pl_rules_next(rules, NULL, rule->kind, rule->package, "2.1.0");
        REQUIRE(found == NULL || strcmp(found->package, rule->package) == 0);
        REQUIRE(pl_rules_framework(rules, rule->package) != NULL);
        REQUIRE(pl_rules_flavour(rules, rule->package) != NULL);
        n_rows++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    size_t n_head = data[0] & 1 ? strlen(head) : 0; /* else the input has its own, or none */
    char *text = calloc(1, n_head + n);
    REQUIRE(text != NULL);
    memcpy(text, head, n_head);
    memcpy(text + n_head, data + 1, n - 1);
    pl_rules rules = {0};
    pl_error error = {0};
    int r = pl_rules_parse(text, "facts.csv", &rules, &error);
    REQUIRE(r == 0 || r == PL_EFORMAT);
    n_refused += r < 0;
    if (r < 0)
        check_message(r, &error);
    else
        use(&rules, n_head + n);
    pl_rules_done(&rules);
    return 0;
}

#ifndef PL_LIBFUZZER

static const char *const good[] = {
    "\1# of 2026\ncpu,torch,>=2.1,x86_64,avx2,\"says \"\"no\"\", and ends\",https://pytorch.org\n",
    "\1alias,tensorflow-cpu,,cpu,tensorflow,,https://pypi.org\n\nglibc,tensorflow,,,2.17,,a\n",
    "\0# no head\n",
};

static size_t length_of(const char *input)
{
    return 1 + strlen(input + 1);
}

static void rows_are_taken_and_what_has_no_head_is_not(void **state)
{
    (void)state;
    static const long n_expected[PL_COUNT_OF(good)] = {1, 2, 0};
    for (size_t i = 0; i < PL_COUNT_OF(good); i++) {
        n_rows = n_refused = 0;
        try_input((const uint8_t *)good[i], length_of(good[i]));
        assert_int_equal(n_rows, n_expected[i]);
        assert_int_equal(n_refused, n_expected[i] == 0);
    }
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    static const char words[] = ",,,\"\"\n\n#kind \x80\xff";
    uint8_t input[512];
    srandom(1);
    n_rows = n_refused = 0;
    for (long i = 0; i < n_tries; i++) {
        const char *from = good[(size_t)random() % PL_COUNT_OF(good)];
        size_t n = length_of(from);
        memcpy(input, from, n);
        for (long k = random() % 4; k > 0; k--)
            input[1 + (size_t)random() % (n - 1)] =
                (uint8_t)words[(size_t)random() % (sizeof words - 1)];
        try_input(input, n);
    }
    assert_true(n_rows > n_tries / 8 && n_refused > n_tries / 8);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 20000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_taken_and_what_has_no_head_is_not),
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_rules", tests, NULL, NULL);
}

#endif
