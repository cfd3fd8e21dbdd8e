-- phpMyAdmin SQL Dump
-- version 5.2.1deb1
-- https://www.phpmyadmin.net/
--
-- Host: localhost:3306
-- Generation Time: May 05, 2024 at 10:00 AM
-- Server version: 10.11.6-MariaDB-0+deb12u1
-- PHP Version: 8.2.18

SET FOREIGN_KEY_CHECKS=0;
SET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";
START TRANSACTION;
SET time_zone = "+00:00";


/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;

--
-- Database: `forum`
--

DELIMITER $$
--
-- Procedures
--
DROP PROCEDURE IF EXISTS `prune`$$
CREATE DEFINER=`root`@`localhost` PROCEDURE `prune` (IN `days` INT)  MODIFIES SQL DATA COMMENT 'don''t; call' BEGIN
  DELETE FROM posts WHERE created < NOW() - INTERVAL days DAY;
  SELECT '$' AS dollar;
END$$

--
-- Functions
--
DROP FUNCTION IF EXISTS `slug`$$
CREATE DEFINER=`root`@`localhost` FUNCTION `slug` (`t` VARCHAR(200)) RETURNS VARCHAR(200) CHARSET utf8mb4 COLLATE utf8mb4_general_ci DETERMINISTIC RETURN LOWER(REPLACE(t, ' ', '-'))$$

DELIMITER ;

-- --------------------------------------------------------

--
-- Table structure for table `posts`
--
-- Creation: May 01, 2024 at 08:00 AM
--

DROP TABLE IF EXISTS `posts`;
CREATE TABLE IF NOT EXISTS `posts` (
  `id` int(10) UNSIGNED NOT NULL,
  `title` varchar(255) NOT NULL COMMENT 'what''s up; doc',
  `body` mediumtext DEFAULT NULL,
  `created` datetime NOT NULL DEFAULT current_timestamp(),
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`meta`))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;

--
-- RELATIONSHIPS FOR TABLE `posts`:
--

--
-- Dumping data for table `posts`
--

INSERT INTO `posts` (`id`, `title`, `body`, `created`, `meta`) VALUES
(1, 'Hello -- world', 'Line\r\nUSE mysql;\r\nDELIMITER $$\r\n/* no */ # no', '2024-05-01 08:00:00', '{\"a\":[1,\"\\\"\"]}'),
(2, 'Sie\'s; ', NULL, '2024-05-01 08:00:01', NULL),
(3, '😀', '', '2024-05-01 08:00:02', '[]');

--
-- Triggers `posts`
--
DROP TRIGGER IF EXISTS `posts_bu`;
DELIMITER $$
CREATE TRIGGER `posts_bu` BEFORE UPDATE ON `posts` FOR EACH ROW BEGIN SET NEW.title = TRIM(NEW.title); END
$$
DELIMITER ;

-- --------------------------------------------------------

--
-- Stand-in structure for view `titles`
-- (See below for the actual view)
--
DROP VIEW IF EXISTS `titles`;
CREATE TABLE IF NOT EXISTS `titles` (
`id` int(10) unsigned
,`title` varchar(255)
);

-- --------------------------------------------------------

--
-- Structure for view `titles`
--
DROP TABLE IF EXISTS `titles`;

DROP VIEW IF EXISTS `titles`;
CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `titles`  AS SELECT `posts`.`id` AS `id`, `posts`.`title` AS `title` FROM `posts` ;

--
-- Indexes for dumped tables
--

--
-- Indexes for table `posts`
--
ALTER TABLE `posts`
  ADD PRIMARY KEY (`id`),
  ADD KEY `created` (`created`);
ALTER TABLE `posts` ADD FULLTEXT KEY `body` (`body`);

--
-- AUTO_INCREMENT for table `posts`
--
ALTER TABLE `posts`
  MODIFY `id` int(10) UNSIGNED NOT NULL AUTO_INCREMENT, AUTO_INCREMENT=4;

DELIMITER $$
--
-- Events
--
DROP EVENT IF EXISTS `weekly`$$
CREATE DEFINER=`root`@`localhost` EVENT `weekly` ON SCHEDULE EVERY 1 WEEK STARTS '2032-05-01 00:00:00' ON COMPLETION NOT PRESERVE DISABLE DO CALL prune(30)$$

DELIMITER ;
SET FOREIGN_KEY_CHECKS=1;
COMMIT;

/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
