use super::*;
use proptest::prelude::*;

fn texts(dialect: Dialect, file: &str) -> Vec<(Kind, u64, String)> {
    let pieces = Scanner::new(dialect, &[]).feed(file.as_bytes(), true);
    pieces
        .iter()
        .map(|one| (one.kind, one.line, String::from_utf8_lossy(&one.text[one.begins..]).into_owned()))
        .collect()
}

fn words(dialect: Dialect, file: &str) -> Vec<String> {
    texts(dialect, file).into_iter().map(|(_, _, text)| text).filter(|text| !text.is_empty()).collect()
}

#[test]
fn semicolons_of_postgresql_end_statements_only_outside_of_literals_comments_and_bodies() {
    for whole in [
        "select ';', E'\\';', 'a\\', \";\", $$;$$, $a$ $$; $b$ $a$;",
        "select 1 /* ; /* ; */ ; */ -- ;\n;",
        "create rule r as on insert to t do also (insert into a values (')'); select 1;);",
        "create or replace function f() returns int begin atomic select case when true then 1 end; select 2; end;",
        "select date'x\\', a$b$c, $1;",
    ] {
        assert_eq!(words(Dialect::Postgres, whole), [whole]);
        assert_eq!(words(Dialect::Postgres, &format!("{whole} select 1")).len(), 2, "{whole}");
    }
}

#[test]
fn backslashes_escape_where_strings_do_not_conform_to_the_standard() {
    let file =
        "set standard_conforming_strings = off;\nselect 'a\\';b';\nset standard_conforming_strings = on;select 'a\\';b";
    let found = words(Dialect::Postgres, file);
    assert_eq!(found[1..], ["select 'a\\';b';", "set standard_conforming_strings = on;", "select 'a\\';", "b"]);
}

#[test]
fn rows_of_copy_and_commands_of_psql_are_no_statements() {
    let file = "-- c\nCOPY t FROM stdin;\n1;\n\\.x\n\\.\n\\connect shop\nselect 1 \\g\nselect 2\\; select 3;";
    let found = texts(Dialect::Postgres, file);
    let kinds: Vec<_> = found.iter().map(|(kind, line, _)| (*kind, *line)).collect();
    assert_eq!(
        kinds,
        [
            (Kind::Sql, 1),
            (Kind::Rows, 3),
            (Kind::RowsEnd, 5),
            (Kind::Client, 6),
            (Kind::Sql, 7),
            (Kind::Client, 7),
            (Kind::Sql, 8),
        ]
    );
    assert_eq!(found[3].2, "\\connect shop\n");
}

#[test]
fn a_file_that_ends_in_a_literal_comment_or_copy_says_so_with_the_line() {
    for (file, kind, line) in [
        ("select 1;\n\nselect 'abc", Kind::OpenText, 3),
        ("select $x$ $y$", Kind::OpenText, 1),
        ("/* /* */", Kind::OpenText, 1),
        ("COPY t FROM stdin;\n1\n2\n", Kind::OpenRows, 4),
        ("COPY t FROM stdin;\n", Kind::OpenRows, 2),
    ] {
        let last = texts(Dialect::Postgres, file).pop().unwrap();
        assert_eq!((last.0, last.1), (kind, line), "{file}");
    }
    assert_eq!(texts(Dialect::Postgres, "COPY t FROM stdin;\n1\n\\.").pop().unwrap().0, Kind::RowsEnd);
}

#[test]
fn delimiters_of_mariadb_count_after_comments_and_not_in_literals() {
    let file = "\u{feff}-- the trigger\nDELIMITER $$\nCREATE TRIGGER t BEGIN SET a=1; END$$\n/* back */\n delimiter ;\n\
                insert into t values ('\nUse it\nDELIMITER x', \"a\\\";\", `;`, '''') # ;\n; select 1\\G select 2--3;";
    let found = words(Dialect::Mariadb, file);
    assert_eq!(found[0], "CREATE TRIGGER t BEGIN SET a=1; END");
    assert!(found[1].starts_with("insert into t values ('\nUse it") && found[1].ends_with("# ;\n"), "{found:?}");
    assert_eq!(found[2..], ["select 1", "select 2--3"]);
}

#[test]
fn statements_are_found_in_linear_time_where_the_delimiter_continues_a_word() {
    let many = 100_000; // quadratic time would take minutes
    let file = format!("DELIMITER $$\n{}", "ADD$$".repeat(many));
    assert_eq!(words(Dialect::Mariadb, &file).len(), many);
    let long = "a".repeat(many);
    let found = words(Dialect::Mariadb, &format!("DELIMITER {long}b\n/{long}"));
    assert_eq!(found, ["/", &"a".repeat(many % 15)[..]]);
}

#[test]
fn comments_that_the_server_runs_are_statements_and_the_clients_commands_are_told_apart() {
    let file = "/*!40101 SET NAMES utf8 */;\n/*M!999999\\- enable the sandbox mode */ \nuse shop\nuse shop;\n/*! create ; */;;";
    let found = texts(Dialect::Mariadb, file);
    assert_eq!(found[0].2, "/*!40101 SET NAMES utf8 */");
    assert_eq!(found[1], (Kind::Client, 3, "use shop\n".to_owned()));
    assert_eq!(found[2], (Kind::Sql, 4, "use shop".to_owned()));
}

#[test]
fn sql_mode_that_a_dump_sets_decides_what_a_backslash_means() {
    let open = "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES' */;\n";
    let back = "/*!50003 SET sql_mode = IFNULL(@OLD_SQL_MODE, '') */ ;\n";
    let found = words(Dialect::Mariadb, &format!("{open}insert 'a\\';\nselect 1;\n{back}insert 'b\\'; c';"));
    assert_eq!((&found[1][..], &found[2][..], &found[4][..]), ("insert 'a\\'", "select 1", "insert 'b\\'; c'"));
    for set in [
        "SET sql_mode='ANSI_QUOTES';",
        "set session sql_mode = concat(@@sql_mode, ',ORACLE');",
        "SET @@sql_mode=\"ANSI\";",
    ] {
        let found = words(Dialect::Mariadb, &format!("{set} select \"a\\\"; select 'b\\'; c';"));
        assert_eq!(found[1..], ["select \"a\\\"", "select 'b\\'; c'"], "{set}");
    }
}

proptest! {
    #[test]
    fn however_a_file_is_cut_its_pieces_are_the_same(
        file in "[a-e;'\"$\\\\/*\n \u{e9}()#`-]{0,40}(COPY t FROM stdin;\n)?[1;'\n\\\\.]{0,20}", cut in 0usize..60,
        mariadb in any::<bool>(),
    ) {
        let dialect = if mariadb { Dialect::Mariadb } else { Dialect::Postgres };
        let whole = Scanner::new(dialect, &[]).feed(file.as_bytes(), true);
        let mut scanner = Scanner::new(dialect, &[]);
        let (first, second) = file.as_bytes().split_at(cut.min(file.len()));
        let mut parts = scanner.feed(first, false);
        parts.extend(scanner.feed(second, true));
        let joined = |pieces: &[Piece], rows: bool| -> Vec<u8> {
            pieces.iter().filter(|one| (one.kind == Kind::Rows) == rows).flat_map(|one| one.text.clone()).collect()
        };
        prop_assert_eq!(joined(&whole, true), joined(&parts, true));
        let but_rows = |pieces: Vec<Piece>| pieces.into_iter().filter(|one| one.kind != Kind::Rows).collect::<Vec<_>>();
        if dialect == Dialect::Postgres {
            let all: Vec<u8> = whole.iter().flat_map(|one| one.text.clone()).collect();
            prop_assert_eq!(all, file.as_bytes());
        }
        prop_assert_eq!(but_rows(whole), but_rows(parts));
    }
}
