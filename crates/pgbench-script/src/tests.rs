//! Tests scripts through the public interface. The tests check how scripts compile, which of them are rejected, and
//! that no script makes the library panic.

use super::*;
use proptest::prelude::*;

fn source(name: &str, text: &str, weight: u32) -> Source {
    Source { name: name.to_owned(), text: text.to_owned(), weight }
}

fn compile(text: &str) -> Result<Program> {
    Program::compile(&[source("test.sql", text, 1)], &[("i".to_owned(), "42".to_owned())])
}

fn program(text: &str) -> Program {
    compile(text).unwrap_or_else(|error| panic!("{error}"))
}

fn sqls(text: &str) -> Vec<String> {
    program(text).sqls().map(|(_, sql)| sql.text.clone()).collect()
}

fn client(program: &Program) -> Variables {
    let mut variables = Variables::new(program, &[("i".to_owned(), "42".to_owned())], &Automatic::default());
    variables.collect_debug();
    variables
}

/// Returns the values that `debug()` prints.
fn debugged(text: &str) -> Vec<String> {
    let program = program(text);
    let mut variables = client(&program);
    program.rehearse(0, &mut variables, &mut Random::new(1), |_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    variables.take_debug().iter().map(|line| line.split(": ").last().unwrap_or_default().to_owned()).collect()
}

fn value(expression: &str) -> String {
    debugged(&format!("\\set x debug({expression})")).remove(0)
}

fn refusal(text: &str) -> String {
    compile(text).err().unwrap_or_else(|| panic!("{text} compiles")).to_string()
}

#[test]
fn commands_with_the_same_text_share_a_prepared_statement_unless_their_rows_are_stored() {
    let text = "SELECT :i;\n\\set j 1\nSELECT :j;\nSELECT :i, 1;\nSELECT :i \\gset\nSELECT :i;\n";
    let scripts = [source("a", text, 1), source("b", "SELECT :i;", 1)];
    let program = Program::compile(&scripts, &[("i".to_owned(), "42".to_owned())]).unwrap();
    let numbers: Vec<_> = program.sqls().map(|(_, sql)| (sql.id, sql.statement)).collect();
    assert_eq!(numbers, [(0, 0), (1, 0), (2, 2), (3, 3), (4, 0), (5, 0)]);
}

#[test]
fn operators_bind_as_documented() {
    for (expression, expected) in [
        ("1 + 2 * 3", "int 7"),
        ("7 - 2 - 1", "int 4"),
        ("-2 - -3", "int 1"),
        ("~1 + 1", "int -3"),
        ("2 * ~1 + 1", "int -6"),
        ("1 | 2 = 3", "boolean true"),
        ("not 1 = 2 and false", "boolean false"),
        ("true or false and false", "boolean true"),
        ("1 < 2 is not null", "boolean true"),
        ("not null is null", "boolean false"),
        ("1 = 1 is true", "boolean true"),
        ("1 << 2 + 1", "int 8"),
        ("-9223372036854775808", "int -9223372036854775808"),
        ("7 / 2 * 2.0", "double 6"),
        ("case when null then 1 when 0.5 then 2 end", "int 2"),
        ("case when false then 1 end", "null"),
        ("null and false", "null"),
        ("false and null", "boolean false"),
    ] {
        assert_eq!(value(expression), expected, "{expression}");
    }
}

#[test]
fn constants_are_computed_once_and_errors_are_left_to_the_run() {
    let of = |text: &str| match &program(&format!("\\set x {text}")).scripts[0].commands[0] {
        Command::Set { expression, .. } => expression.clone(),
        other => panic!("{other:?}"),
    };
    assert!(matches!(of("least(1, 2) + hash(7, 1) % 3 * abs(-1)"), Expression::Constant(Value::Integer(_))));
    assert!(matches!(of("1 / 0"), Expression::Binary(..)));
    assert!(matches!(of("random(1, 1)"), Expression::Call(..)));
    assert!(matches!(of("hash(7)"), Expression::Call(..)));
}

#[test]
fn only_the_branch_that_holds_is_run() {
    let text = "\\if :i < 0\n\\set x debug(1)\n\\elif :i = 42\n\\if false\n\\set x debug(2)\n\\else\n\\set x debug(3)\n\\endif\n\
                \\set x debug(4)\n\\elif 1 / 0\n\\set x debug(5)\n\\else\n\\set x debug(6)\n\\endif\n\\set x debug(7)\n";
    assert_eq!(debugged(text), ["int 3", "int 4", "int 7"]);
}

#[test]
fn a_condition_without_else_falls_through() {
    assert_eq!(
        debugged("\\if null\n\\set x debug(1)\n\\endif\n\\if 0.0\n\\else\n\\endif\n\\set x debug(2)"),
        ["int 2"]
    );
}

#[test]
fn commands_end_at_semicolons_outside_quotes_comments_parentheses_and_bodies() {
    assert_eq!(
        sqls("-- a ; b\nSELECT ';', \";\", $$;$$, $a$;$$;$a$ /* ; /* ; */ ; */ -- ;\n , (1;2);\nSELECT 2 -- ;\n"),
        ["SELECT ';', \";\", $$;$$, $a$;$$;$a$ /* ; /* ; */ ; */ -- ;\n , (1;2);", "SELECT 2 -- ;"]
    );
    assert_eq!(
        sqls("SELECT E'\\';', e'\n';SELECT 'a\\';SELECT 1"),
        ["SELECT E'\\';', e'\n';", "SELECT 'a\\';", "SELECT 1"]
    );
    assert_eq!(sqls("SELECT E'a'\n  '\\';'; SELECT type'\\'"), ["SELECT E'a'\n  '\\';';", "SELECT type'\\'"]);
    assert_eq!(sqls("select a$$, $1$$;$$;").len(), 1);
    let body = "create or replace procedure p() begin atomic select case when 1 then 2 end; select 3; end;";
    assert_eq!(sqls(&format!("{body} select 1")), [body, "select 1"]);
    assert_eq!(sqls("begin; end;"), ["begin;", "end;"]);
}

#[test]
fn a_comment_alone_is_no_command_but_a_semicolon_alone_is_an_empty_query() {
    assert_eq!(sqls("/* head */\n\\set x 1\n/*+ hint */ SELECT 1;;"), ["/*+ hint */ SELECT 1;", ";"]);
}

#[test]
fn joined_statements_are_one_command() {
    let joined = program("SELECT 1\\; SELECT 2\\;;");
    let (_, sql) = joined.sqls().next().unwrap();
    assert_eq!((sql.text.as_str(), sql.combined), ("SELECT 1; SELECT 2;;", true));
    assert!(joined.check_extended().unwrap_err().hint.contains("simple"));
    let single = program("SELECT 1\\; -- nothing\n\\; ;");
    assert!(single.check_extended().is_ok());
}

#[test]
fn variables_stand_where_pgbench_sees_them() {
    let program = program("SELECT :i::int, a[1:2], '12:30', :i+:j, 1::i -- :i\n, ':k', \":i\", :été;");
    let (_, sql) = program.sqls().next().unwrap();
    assert_eq!(sql.text, "SELECT $1::int, a[1:2], '12:30', $2+$3, 1::i -- :i\n, ':k', \":i\", $4;");
    let names: Vec<&str> = sql.parameters.iter().map(|slot| program.symbols.name(*slot)).collect();
    assert_eq!(names, ["i", "i", "j", "été"]);
    let mut variables = client(&program);
    variables.set_text(program.symbols.get("k").unwrap(), b"it");
    let mut simple = Vec::new();
    variables.write_sql(&sql.pieces, &mut simple);
    let expected = "SELECT 42::int, a[1:2], '12:30', 42+:j, 1::i -- 42\n, 'it', \"42\", :été;";
    assert_eq!(String::from_utf8(simple).unwrap(), expected);
}

#[test]
fn a_defined_variable_inside_quotes_is_refused_where_it_cannot_be_replaced() {
    let error = program("SELECT 1;\nSELECT ':i'").check_extended().unwrap_err();
    assert_eq!(error.subject, "test.sql:2");
    assert!(program("SELECT ':i'").check_simple().is_ok());
    assert!(program("SELECT ':nobody' /* :i */").check_extended().is_ok());
}

#[test]
fn gathering_belongs_to_the_command_before() {
    let program = program("SELECT 1 AS a \\gset p_\nSELECT 2 AS b;\n\\aset\n\\set x :p_a + :b\n");
    let uses: Vec<String> = program.sqls().map(|(_, sql)| format!("{:?}", sql.result_use)).collect();
    assert_eq!(uses, ["Gset { prefix: \"p_\" }", "Aset { prefix: \"\" }"]);
    for wrong in ["\\gset", "\\set x 1\n\\gset", "SELECT 1\\gset\n\\gset", "\\if 1\nSELECT 1;\n\\endif\n\\gset"] {
        assert!(refusal(wrong).contains("must follow a SQL command"), "{wrong}");
    }
}

#[test]
fn pipelines_are_checked_on_every_way() {
    assert!(refusal("\\startpipeline\nSELECT 1;").contains("ends with this pipeline open"));
    assert!(refusal("\\startpipeline\n\\startpipeline\n\\endpipeline").contains("already open"));
    assert!(refusal("\\syncpipeline").contains("no pipeline"));
    assert!(refusal("\\startpipeline\nSELECT 1 \\gset\n\\endpipeline").contains("in a pipeline"));
    let open = "\\if :i\n\\startpipeline\n\\endif\nSELECT 1;\n\\if :i\n\\syncpipeline\n\\endpipeline\n\\endif\n";
    assert!(program(open).check_simple().unwrap_err().cause.contains("simple protocol"));
}

#[test]
fn a_sleep_takes_numbers_units_and_variables() {
    for (text, expected) in [
        ("\\sleep 2", 2_000_000_000),
        ("\\sleep 3ms", 3_000_000),
        ("\\sleep 4 US", 4_000),
        ("\\sleep -4 s", 0),
        ("\\sleep :i us", 42_000),
    ] {
        let program = program(text);
        let Command::Sleep { argument, unit_ns, .. } = program.scripts[0].commands[0] else { panic!("{text}") };
        assert_eq!(client(&program).sleep_ns(argument, unit_ns), Ok(expected), "{text}");
    }
    let program = program("\\set x true\n\\sleep :x\n");
    let mut variables = client(&program);
    let slot = program.symbols.get("x").unwrap();
    assert!(variables.sleep_ns(Operand::Variable(slot), 1).unwrap_err().to_string().contains("undefined"));
    variables.set(slot, Value::Boolean(true));
    assert!(variables.sleep_ns(Operand::Variable(slot), 1).unwrap_err().to_string().contains("invalid sleep time"));
}

#[test]
fn shell_commands_are_refused_with_a_way_out() {
    let error = compile("\\setshell x echo 1").unwrap_err();
    assert_eq!(error.subject, "test.sql:1:2");
    assert!(error.cause.contains("not supported") && error.hint.contains("-D"));
}

#[test]
fn a_variable_that_nobody_defines_is_found_before_the_run() {
    assert!(refusal("\\set x :y + 1").contains("\"y\" is never defined"));
    assert!(refusal("\\if true and :i = 1 or :y\n\\endif\n\\if :y\n\\endif").contains("never defined"));
    assert!(refusal("\\set x case when :y then 1 end").contains("never defined"));
    assert!(refusal("\\sleep :y").contains("\"y\" is never defined"));
    assert!(refusal("SELECT 1 AS a \\gset p_\n\\set x :q_a").contains("never defined"));
    assert!(compile("SELECT 1 AS a \\gset p_\n\\set x :p_a + :i + :scale + :client_id").is_ok());
    let two = [source("a", "\\set x :y", 1), source("b", "\\set y 1", 1)];
    assert!(Program::compile(&two, &[]).is_ok(), "another script of the same client defines it");
}

#[test]
fn scripts_are_chosen_by_weight() {
    let sources = [source("a", ";", 1), source("never", ";", 0), source("b", ";", 3)];
    let program = Program::compile(&sources, &[]).unwrap();
    let mut random = Random::new(5);
    let mut chosen = [0u32; 3];
    (0..40_000).for_each(|_| chosen[program.choose(&mut random)] += 1);
    assert_eq!(chosen[1], 0);
    assert!((9_700..10_300).contains(&chosen[0]), "{chosen:?}");
    let error = Program::compile(&[source("never", ";", 0)], &[]).unwrap_err();
    assert!(error.cause.contains("weight"));
}

#[test]
fn memory_of_text_is_used_again() {
    let program = program("SELECT 1 AS v \\gset\n\\set x :v");
    let mut variables = client(&program);
    let slot = program.symbols.get("v").unwrap();
    variables.set_text(slot, b"12");
    assert_eq!(variables.value(slot), Ok(Value::Integer(12)));
    variables.set_text(slot, b"on");
    assert_eq!(variables.value(slot), Ok(Value::Boolean(true)));
    let mut text = Vec::new();
    assert!(variables.write_text(slot, &mut text));
    assert_eq!(text, b"on");
}

#[test]
fn a_parameter_that_is_no_number_is_refused_and_not_drawn_with_for_ever() {
    for (function, rule) in [
        ("gaussian", "must be at least 2.0"),
        ("exponential", "must be greater than zero"),
        ("zipfian", "must be in range"),
    ] {
        let program = program(&format!("\\set x random_{function}(1, 10, sqrt(-1))"));
        let refused = program.rehearse(0, &mut client(&program), &mut Random::new(1), |_, _| {});
        let words = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(words.contains(rule) && words.contains("NaN"), "{function}: {words}");
    }
}

/// Generates fragments of scripts. The test joins them in any order.
fn fragments() -> impl Strategy<Value = String> {
    let known = [
        "\\",
        "\\set ",
        "x ",
        ":i",
        "\n",
        "\\if ",
        "\\else\n",
        "\\endif\n",
        "\\gset",
        "\\sleep ",
        "(",
        ")",
        "1",
        ".5e",
        "'",
        "\"",
        "$$",
        "$a$",
        "/*",
        "*/",
        "--",
        ";",
        "\\;",
        "E'",
        "+",
        "<",
        "not ",
        "is ",
        "null ",
        "case ",
        "when ",
        "then ",
        "end ",
        "random(",
        ",",
        "\\\n",
        "\\\r\n",
        "é",
        "::",
        "create function ",
        "begin ",
        "\u{feff}",
        "9223372036854775808",
    ];
    let fragment = prop_oneof![4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "\\PC{0,4}"];
    proptest::collection::vec(fragment, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_text_makes_the_compiler_panic(text in fragments()) {
        if let Ok(program) = compile(&text) {
            let _ = program.rehearse(0, &mut client(&program), &mut Random::new(1), |_, _| {});
            let _ = program.check_extended();
        }
    }

    #[test]
    fn no_expression_makes_evaluation_panic(text in "[-+*/%<>=|&#~(), 0-9.a-z:]{0,40}") {
        if let Ok(program) = compile(&format!("\\set x {text}")) {
            let _ = program.rehearse(0, &mut client(&program), &mut Random::new(1), |_, _| {});
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    for text in
        ["(".repeat(100_000), "-".repeat(100_000), "not ".repeat(50_000), "abs(".repeat(50_000), ":i+".repeat(9_000)]
    {
        assert!(refusal(&format!("\\set x {text}1")).contains("nested more than"), "{}", &text[..8]);
    }
    let longest = format!("\\set x debug({}1)", ":i + ".repeat(200));
    assert_eq!(debugged(&longest), [format!("int {}", 200 * 42 + 1)]);
}

#[test]
fn what_need_not_be_computed_may_read_what_nobody_defines_with_a_caution() {
    for lazy in [
        "\\set x false and :nope",
        "\\set x true or :nope = 1",
        "\\set x case when true then 1 else :nope end",
        "\\set x case when true then 1 when :nope then 2 end",
        "\\set x case when false then :nope end",
        "\\if true\n\\elif :nope\n\\endif",
        "\\if false\n\\set x :nope\n\\endif",
        "\\if false\n\\sleep :nope ms\n\\endif",
    ] {
        let program = program(lazy);
        let mut variables = client(&program);
        program.rehearse(0, &mut variables, &mut Random::new(1), |_, _| {}).unwrap_or_else(|error| panic!("{error}"));
        let cautions: Vec<_> = program.cautions.iter().map(|caution| caution.words(false)).collect();
        assert_eq!(cautions.len(), 1, "{lazy}");
        assert!(cautions[0].contains("the variable :nope is never defined and fails when"), "{}", cautions[0]);
    }
}

#[test]
fn a_script_that_is_never_chosen_may_read_what_nobody_defines() {
    let scripts = [source("a", "SELECT 1;", 1), source("b", "\\set x :nope", 0)];
    assert!(Program::compile(&scripts, &[]).is_ok());
}

#[test]
fn a_variable_of_sql_that_nobody_defines_is_a_caution() {
    let text = "SELECT :i, :tpyo, ':quoted' /* :comment */, :tpyo;\n\\set typo 1\nSELECT 2 AS a \\gset g_\nSELECT :g_a";
    let program = program(text);
    let words = |simple| program.cautions.iter().map(|caution| caution.words(simple)).collect::<Vec<_>>();
    let variable = "test.sql:1: the variable :tpyo is never defined and";
    assert_eq!(
        words(false),
        [format!("{variable} is sent as null; known: client_id, default_seed, i, random_seed, scale, typo")]
    );
    assert_eq!(words(true)[0].split("; ").next(), Some(&*format!("{variable} stays in the statement as written")));
}

#[test]
fn a_test_whether_a_variable_is_defined_is_sent_as_false() {
    assert_eq!(sqls("SELECT :{?i}, ':{?i}', :{?}, :{i};"), ["SELECT FALSE, ':{?i}', :{?}, :{i};"]);
}

#[test]
fn sql_mode_decides_what_a_backslash_means_between_quotes() {
    let counted = |mode: &str, text: &str| {
        let dialect = Dialect::Mysql(SqlMode::of(mode));
        Program::compile_for(dialect, &[source("s", text, 1)], &[]).map(|program| program.sqls().count()).ok()
    };
    let (single, double) = ("SELECT 'a\\'; SELECT 'b';", "SELECT \"a\\\"; SELECT \"b\";");
    assert_eq!((counted("", single), counted("", double)), (None, None), "the last quote stays open");
    assert_eq!((counted("NO_BACKSLASH_ESCAPES", single), counted("no_backslash_escapes", double)), (Some(2), Some(2)));
    for mode in ["STRICT_TRANS_TABLES, ansi_quotes", "ANSI", "ORACLE"] {
        assert_eq!((counted(mode, single), counted(mode, double)), (None, Some(2)), "{mode}");
    }
}

/// Compiles a script for MySQL. Returns each SQL command as it is sent, its number of variables outside quotes, and its
/// number of variables inside quotes.
fn mysql(text: &str) -> Vec<(String, usize, usize)> {
    let program = Program::compile_for(Dialect::Mysql(SqlMode::default()), &[source("test.sql", text, 1)], &[]);
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    program.sqls().map(|(_, sql)| (sql.text.clone(), sql.parameters.len(), sql.quoted.len())).collect()
}

#[test]
fn strings_names_and_comments_of_mysql_end_by_its_own_rules() {
    let one = |text: &str| {
        let found = mysql(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        found[0].clone()
    };
    for text in [
        r"SELECT 'it\'s; one', 1;",
        r#"SELECT "a \"b; c", 1;"#,
        r"SELECT 'C:\\', ';';",
        "SELECT `a;b``c` FROM t;",
        r"SELECT `a\` FROM t;",
        "SELECT 1 # one; 'two\n + 1;",
        "SELECT 1 -- it's; one\n + 1;",
        "SELECT 1 /* /* it's; */ + 1;",
        "SELECT $$a, b$$;",
        "SELECT 2 */* two */ 3;",
        "SELECT 'one'' and; two';",
    ] {
        assert_eq!((one(text).1, one(text).2), (0, 0), "{text}");
    }
    assert_eq!(one("SELECT 5--:a;"), ("SELECT 5--$1;".to_owned(), 1, 0), "`--` begins a comment only before a blank");
    assert_eq!(one("SELECT :a # :b\n, :c;").1, 2);
    assert_eq!((one(r"SELECT 'a\', :a';").1, one(r"SELECT 'a\', :a';").2), (0, 1));
    assert_eq!((one("SELECT ':a' , `:b`, \":c\", :d;").1, one("SELECT ':a' , `:b`, \":c\", :d;").2), (1, 3));
    assert_eq!(mysql("# nothing; here\n-- nor; here\nSELECT 1; SELECT 2;").len(), 2);
}

#[test]
fn mysql_executes_what_is_in_some_comments() {
    let found =
        mysql("/*!40101 SELECT :a */; /*M!100100 SELECT ':b' */; /* SELECT :c */ SELECT /*! :d, */ 1; SELECT 1;");
    let counts: Vec<_> = found.iter().map(|(_, outside, inside)| (*outside, *inside)).collect();
    assert_eq!(counts, [(1, 0), (0, 1), (1, 0), (0, 0)]);
    let program = Program::compile_for(
        Dialect::Mysql(SqlMode::default()),
        &[source("s", "/*! SELECT 1 */\\; SELECT 2;", 1)],
        &[],
    )
    .unwrap();
    assert!(program.sqls().next().unwrap().1.combined);
}

#[test]
fn postgresql_knows_nothing_of_mysqls_quotes() {
    assert_eq!(sqls("SELECT 'a\\' || 'b'; SELECT 1 # 2; SELECT 1--2\n;").len(), 3);
}

proptest! {
    #[test]
    fn no_text_makes_the_scan_for_mysql_panic(text in "[a-z:;'\"`#*/! \\n\\\\$()-]{0,60}") {
        let compiled = Program::compile_for(Dialect::Mysql(SqlMode::default()), &[source("t", &text, 1)], &[]);
        if let Ok(program) = compiled {
            for (_, sql) in program.sqls() {
                prop_assert!(sql.parameter_offsets.len() == sql.parameters.len());
            }
        }
    }
}
