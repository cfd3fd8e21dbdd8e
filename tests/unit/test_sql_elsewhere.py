"""SQL of the user that changes objects of another database, or creates a trigger that would."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.engines import get
from ironbench.errors import InputError

TRIGGER = """DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER `noted`
AFTER INSERT ON `sale` FOR EACH ROW BEGIN
  update shop.item set sold = 1;
END */;;
"""
VIEW = """/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `names` AS select `item`.`name` AS `name` from `item` */;
"""
PROCEDURE = """delimiter //
create procedure sell() begin -- update shop.item
  update item set item.sold = 1.5; insert into sale set sale.item = 'insert into shop.item';
  insert into sale values (1) on duplicate   key
  update sale.item = 2; select item.name from item for update;
end//
"""


@pytest.mark.parametrize(
    "sql",
    [
        "drop table if exists `shop`.`item`;",
        "create table if not exists shop.item (id int);",
        "create or replace view shop.names as select 1",
        "create index sold on shop.item (sold)",
        "create table sale (item int references shop.item (id))",
        "alter table shop.item add sold int",
        "rename table shop.item to item",
        "truncate shop.item",
        "/* all */ insert ignore into `my shop` . `item` values (1)",
        "replace shop.item values (1)",
        "update low_priority shop.item set sold = 1",
        "update sale join shop.item on sale.item = item.id set item.sold = 1",
        "update sale as s, `shop`.`item` as i set i.sold = 1",
        "delete from `shop`.item;",
        "delete shop.item from shop.item join sale on sale.item = item.id",
        "delete from sale, shop.item using sale join shop.item",
        "delete from shop.item returning item.id, item.name",
        "call shop.sell()",
        TRIGGER,
    ],
)
def test_what_changes_another_database_is_refused(sql: str, tmp_path: Path) -> None:
    (file := tmp_path / "setup.sql").write_text(f"select 1;\n{sql}\n")
    with pytest.raises(InputError, match="affects objects outside the trial's database"):
        get("mariadb").data_import.examined_setup(file)


@pytest.mark.parametrize(
    "sql",
    [
        "insert into sale values ('update shop.item', 1.5) on duplicate key update sale.item = 1",
        "create trigger noted before update on item for each row set new.sold = old.sold",
        "create function sold() returns text return replace(item.name, 1, 2)",
        "create table copied as select item.name from item",
        "update item, sale set item.sold = 1",
        "update item join sale on item.id = sale.item set item.sold = 1, item.name = sale.name",
        "delete item from item join sale on item.id = sale.item order by item.id, item.name",
        "delete from item returning item.id, item.name",
        "create trigger gone after delete on item for each row insert into sale select item.id, item.name from item",
        "create table sale (item int, foreign key (item) references item (id) on delete cascade on update cascade)",
        VIEW,
        PROCEDURE,
    ],
)
def test_columns_that_are_named_with_their_table_are_none_of_another_database(sql: str, tmp_path: Path) -> None:
    (file := tmp_path / "setup.sql").write_text(f"select 1;\n{sql}\n")
    get("mariadb").data_import.examined_setup(file)


@pytest.mark.parametrize("commands", [["update shop.item set sold = $1"], ["select 1", "begin; delete from shop.item"]])
def test_a_script_that_changes_another_database_than_its_copy_is_refused(commands: list[str]) -> None:
    with pytest.raises(InputError, match="affects objects outside the trial's database") as caught:
        get("mariadb").data_import.examined_script("sell.sql", commands)
    assert caught.value.subject == "sell.sql" and caught.value.cause.startswith(f"command {len(commands)}: ")
    get("mariadb").data_import.examined_script(
        "sell.sql", ["select shop.item.name from shop.item", "update item set a = 1"]
    )
