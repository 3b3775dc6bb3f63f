# Rscript r/test.R, with `steinax` on the path and STEINAX_DATA set: real output of CmdStan, of the eight schools.
suppressMessages({library(testthat); library(posterior)})
here <- dirname(normalizePath(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))))
source(file.path(here, "steinax.R"))
output <- file.path(Sys.getenv("STEINAX_DATA"), "cmdstan_eight_schools")

read_draws <- function(file) { # of the table that has no gradients: CmdStan may write both tables to one file
  lines <- grep("^#|^$", readLines(file), invert = TRUE, value = TRUE)
  heads <- grep("^lp__", lines)
  at <- heads[!grepl(",g_", lines[heads])][1]
  end <- c(heads[heads > at], length(lines) + 1)[1] - 1
  table <- read.csv(text = lines[at:end], check.names = FALSE)
  names(table) <- sub("^([^.]+)\\.([0-9]+)$", "\\1[\\2]", names(table))
  as_draws_array(as.matrix(table))
}
draws <- do.call(bind_draws, c(lapply(file.path(output, sprintf("eight_%d.csv", 1:4)), read_draws), along = "chain"))

test_that("means agree with those of posterior, and are more accurate", {
  wanted <- c("mu", "tau", "theta")
  table <- summarise_draws_cv(draws, output, "mean", "mcse_mean", "sd", variables = wanted)
  print(as.data.frame(table[!is.na(table$mean_cv), names(table) != "sd"]), digits = 3) # for docs/proposals
  expect_s3_class(table, "draws_summary")
  expect_true(is.na(table$mean_cv[table$variable == "lp__"]))
  known <- table[!is.na(table$mean_cv), ]
  expect_setequal(known$variable, variables(subset_draws(draws, wanted)))
  expect_lt(max(abs(known$mean_cv - known$mean) / known$mcse_mean), 4)
  expect_lt(max(abs(known$sd_cv / known$sd - 1)), 0.1)
  expect_gt(median(known$worth), 5)
  expect_lt(max(abs((known$mcse_mean / known$mcse_mean_cv)^2 / known$worth - 1)), 0.5)
})

test_that("elements count from one", {
  from_one <- vapply(c("mu", "L[0, 9]", "x[0,1]"), shifted, character(1), by = 1L, USE.NAMES = FALSE)
  expect_equal(from_one, c("mu", "L[1,10]", "x[1,2]"))
  rows <- read_cv(output, variables = c("theta[1]", "theta[8]"))
  expect_equal(rows$variable, c("theta[1]", "theta[8]"))
  expect_lt(abs(rows$plain_mean[1] - mean(extract_variable(draws, "theta[1]"))), 1e-6)
  expect_error(read_cv(output, variables = "theta[0]"), "count from 1")
  expect_error(read_cv(output, variables = "theta[9]"), "no element \\[9\\].*theta\\[1\\], .*count from 1")
  told <- "'L' has no element [4,3]: out[1].csv, runs[0]/a.csv; x[1,1], y[2]."
  expect_equal(counted_from_one("'L' has no element [3, 2]: out[1].csv, runs[0]/a.csv; x[0,0], y[1]."), told)
})

test_that("errors say what to do", {
  expect_error(read_cv(output, command = "no-such-program"), "install the Python package steinax")
  expect_error(read_cv(file.path(output, "nothing.csv")), "there is no file")
  other <- rename_variables(subset_draws(draws, "mu"), nu = mu)
  expect_error(summarise_draws_cv(other, output, variables = "mu"), "same run")
  moved <- mutate_variables(subset_draws(draws, "mu"), mu = mu + 0.1)
  expect_error(summarise_draws_cv(moved, output, variables = "mu"), "other means than the files")
})
