-- --------------------------------------------------------
-- Host:                         127.0.0.1
-- Server version:               10.11.2-MariaDB - mariadb.org binary distribution
-- Server OS:                    Win64
-- HeidiSQL Version:             12.3.0.6589
-- --------------------------------------------------------

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8 */;
/*!50503 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;


-- Dumping database structure for farm
DROP DATABASE IF EXISTS `farm`;
CREATE DATABASE IF NOT EXISTS `farm` /*!40100 DEFAULT CHARACTER SET latin1 COLLATE latin1_swedish_ci */;
USE `farm`;

-- Dumping structure for table farm.animal
DROP TABLE IF EXISTS `animal`;
CREATE TABLE IF NOT EXISTS `animal` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `name` varchar(50) DEFAULT NULL COMMENT 'use `farm`.`animal`; or not',
  `kind` enum('cow','it''s','a;b') DEFAULT 'cow',
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;

-- Dumping data for table farm.animal: ~3 rows (approximately)
INSERT INTO `animal` (`id`, `name`, `kind`) VALUES
	(1, 'Élodie', 'cow'),
	(2, 'farm.animal; `farm`.x', 'it\'s'),
	(3, NULL, 'a;b');

-- Dumping structure for procedure farm.feed
DROP PROCEDURE IF EXISTS `feed`;
DELIMITER //
CREATE PROCEDURE `feed`(
	IN `who` INT
)
    COMMENT 'feeds; one'
BEGIN
	DECLARE n INT DEFAULT 0;
	label1: WHILE n < 2 DO
		SET n = n + 1;
	END WHILE label1;
	UPDATE `farm`.`animal` SET `name` = CONCAT(`name`, ' fed') WHERE `id` = `who`;
END//
DELIMITER ;

-- Dumping structure for view farm.cows
DROP VIEW IF EXISTS `cows`;
-- Creating temporary table to overcome VIEW dependency errors
CREATE TABLE `cows` (
	`id` INT(10) UNSIGNED NOT NULL,
	`name` VARCHAR(50) NULL COLLATE 'latin1_swedish_ci'
) ENGINE=MyISAM;

-- Dumping structure for trigger farm.animal_before_insert
DROP TRIGGER IF EXISTS `animal_before_insert`;
SET @OLDTMP_SQL_MODE=@@SQL_MODE, SQL_MODE='STRICT_TRANS_TABLES';
DELIMITER //
CREATE TRIGGER `animal_before_insert` BEFORE INSERT ON `animal` FOR EACH ROW BEGIN
	IF NEW.`name` = '' THEN
		SET NEW.`name` = NULL;
	END IF;
END//
DELIMITER ;
SET SQL_MODE=@OLDTMP_SQL_MODE;

-- Dumping structure for event farm.night
DROP EVENT IF EXISTS `night`;
DELIMITER //
CREATE EVENT `night` ON SCHEDULE EVERY 1 DAY STARTS '2024-01-01 00:00:00' ON COMPLETION PRESERVE DISABLE DO BEGIN
  CALL feed(1);
END//
DELIMITER ;

-- Dumping structure for view farm.cows
DROP VIEW IF EXISTS `cows`;
-- Removing temporary table and create final VIEW structure
DROP TABLE IF EXISTS `cows`;
CREATE ALGORITHM=UNDEFINED DEFINER=`farmer`@`%` SQL SECURITY DEFINER VIEW `cows` AS select `farm`.`animal`.`id` AS `id`,`farm`.`animal`.`name` AS `name` from `farm`.`animal` where `farm`.`animal`.`kind` = 'cow';

/*!40103 SET TIME_ZONE=IFNULL(@OLD_TIME_ZONE, 'system') */;
/*!40101 SET SQL_MODE=IFNULL(@OLD_SQL_MODE, '') */;
/*!40014 SET FOREIGN_KEY_CHECKS=IFNULL(@OLD_FOREIGN_KEY_CHECKS, 1) */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40111 SET SQL_NOTES=IFNULL(@OLD_SQL_NOTES, 1) */;
