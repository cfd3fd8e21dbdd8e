-- phpMyAdmin SQL Dump
-- version 5.2.1deb1
-- https://www.phpmyadmin.net/
--
-- Host: localhost:3306
-- Generation Time: Feb 29, 2024 at 12:00 PM
-- Server version: 10.11.6-MariaDB-0+deb12u1
-- PHP Version: 8.2.7

SET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";
START TRANSACTION;
SET time_zone = "+00:00";


/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;

--
-- Database: `blog`
--

DELIMITER $$
--
-- Procedures
--
CREATE DEFINER=`root`@`localhost` PROCEDURE `cost$up` (IN `a$b` INT)  NO SQL BEGIN
  SELECT '$', "$x$", `a$b`;
END$$

--
-- Functions
--
CREATE DEFINER=`root`@`localhost` FUNCTION `twice` (`n` INT) RETURNS INT(11) DETERMINISTIC RETURN n * 2$$

DELIMITER ;

-- --------------------------------------------------------

--
-- Table structure for table `post`
--

CREATE TABLE `post` (
  `id` int(11) NOT NULL,
  `title` varchar(200) NOT NULL,
  `body` mediumtext DEFAULT NULL,
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`meta`)),
  `at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  `thumb` blob DEFAULT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;

--
-- Dumping data for table `post`
--

INSERT INTO `post` (`id`, `title`, `body`, `meta`, `at`, `thumb`) VALUES
(1, 'Don''t; drop', '<p style=\"a:b;\">--</p>\r\n', '{\"a\": \"\\u00e9\"}', '2024-02-29 12:00:00', 0x89504e470d0a1a0a),
(2, '😀 emoji', NULL, NULL, '2024-02-29 12:00:00', NULL);

--
-- Triggers `post`
--
DELIMITER $$
CREATE TRIGGER `lower_title` BEFORE UPDATE ON `post` FOR EACH ROW SET NEW.title = LOWER(NEW.title)
$$
DELIMITER ;

-- --------------------------------------------------------

--
-- Stand-in structure for view `titles`
-- (See below for the actual view)
--
CREATE TABLE `titles` (
`id` int(11)
,`title` varchar(200)
);

-- --------------------------------------------------------

--
-- Structure for view `titles`
--
DROP TABLE IF EXISTS `titles`;

CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `titles`  AS SELECT `post`.`id` AS `id`, `post`.`title` AS `title` FROM `post` ;

--
-- Indexes for dumped tables
--

--
-- Indexes for table `post`
--
ALTER TABLE `post`
  ADD PRIMARY KEY (`id`),
  ADD KEY `title` (`title`(20));
ALTER TABLE `post` ADD FULLTEXT KEY `body` (`body`);

--
-- AUTO_INCREMENT for dumped tables
--

--
-- AUTO_INCREMENT for table `post`
--
ALTER TABLE `post`
  MODIFY `id` int(11) NOT NULL AUTO_INCREMENT, AUTO_INCREMENT=3;
COMMIT;

/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
