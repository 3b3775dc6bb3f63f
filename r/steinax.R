# Posterior means and standard deviations with a smaller Monte Carlo error, in R: source("steinax.R").
#
# The scores come from CmdStan's diagnostic files, so sample with
#   fit <- model$sample(data, save_latent_dynamics = TRUE, sig_figs = 16, output_dir = "output")
#   summarise_draws_cv(fit$draws(), "output")
# The work is done by the program `steinax`, a Python package; posterior and jsonlite are needed here.

#' Controlled means and standard deviations of all parameters in CmdStan's files.
#'
#' @param files Paths of CSV files of draws and diagnostics, of their folder, or of a file of `steinax convert`.
#' @param variables Names of variables, such as "tau"; all by default.
#' @param command The program: its name, or its path if it is not found, such as "~/venv/bin/steinax".
#' @return A data frame with a row for each parameter: `variable`, `mean_cv`, `mcse_mean_cv`, `sd_cv`, `mcse_sd_cv`
#'   and `worth`, how many times as many draws the plain mean would need. Elements count from 1, as in Stan.
read_cv <- function(files, variables = NULL, command = "steinax") {
  if (Sys.which(command) == "") {
    stop("there is no program ", command, ": install the Python package steinax, or give its path as `command`.",
         call. = FALSE)
  }
  told <- c("summary", files, "--json", rbind(rep("--var", length(variables)), variables))
  complaint <- tempfile()
  on.exit(unlink(complaint))
  printed <- suppressWarnings(system2(command, shQuote(told), stdout = TRUE, stderr = complaint))
  if (!is.null(attr(printed, "status"))) {
    stop(paste(readLines(complaint), collapse = "\n"), call. = FALSE)
  }
  rows <- jsonlite::fromJSON(paste(printed, collapse = "\n"))$parameters
  data.frame(
    variable = count_from_one(rows$name),
    mean_cv = rows$mean, mcse_mean_cv = rows$mcse_mean,
    sd_cv = rows$sd, mcse_sd_cv = rows$mcse_sd,
    worth = rows$worth
  )
}

#' The summary of posterior::summarise_draws, with the columns of `read_cv` next to the plain ones.
#'
#' @param x Draws in any format of posterior, of the same run as the files.
#' @param files,variables,command As for `read_cv`.
#' @param ... Measures, as for posterior::summarise_draws.
#' @return The draws_summary of `x`; variables that were not asked for or are not the model's, such as `lp__`, get NA.
summarise_draws_cv <- function(x, files, ..., variables = NULL, command = "steinax") {
  table <- posterior::summarise_draws(x, ...)
  controlled <- read_cv(files, variables, command)
  at <- match(table$variable, controlled$variable)
  if (all(is.na(at))) {
    stop("the files have none of the variables of the draws: give the files of the same run.", call. = FALSE)
  }
  for (column in setdiff(names(controlled), "variable")) table[[column]] <- controlled[[column]][at]
  table
}

# theta[0,1], as Python counts, is theta[1,2] in Stan and in posterior.
count_from_one <- function(names) {
  vapply(names, function(name) {
    parts <- regmatches(name, regexec("^(.*)\\[([0-9, ]+)\\]$", name))[[1]]
    if (length(parts) == 0) return(name)
    index <- as.integer(strsplit(parts[3], ",")[[1]]) + 1L
    paste0(parts[2], "[", paste(index, collapse = ","), "]")
  }, character(1), USE.NAMES = FALSE)
}
