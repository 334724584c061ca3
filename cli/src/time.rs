//! Durations as users write them (`500ms`, `10s`, `5m`, `1h`; a number alone is seconds), and points in time as in RFC
//! 3339.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Parses a duration.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(USE.to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| USE.to_owned())?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err("the time is too long: use at most 1000000h".to_owned()),
    }
}

/// 114 years: the sum of several durations doesn't overflow.
const LONGEST: Duration = Duration::from_secs(1_000_000 * 3600);

const USE: &str = "write a time as 500ms, 10s, 5m or 1h; a number alone is seconds";

/// Formats a duration for people: `350 ms`, `12 s`, `3 min`, `1 min 15 s`, `2 h 1 min`.
pub(crate) fn text(duration: Duration) -> String {
    let (millis, seconds) = (duration.as_millis(), duration.as_secs());
    let with = |large: u64, unit: &str, small: u64, rest: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {rest}"),
    };
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds} s"),
        60..3600 => with(seconds / 60, "min", seconds % 60, "s"),
        _ => with(seconds / 3600, "h", seconds / 60 % 60, "min"),
    }
}

/// `2026-11-22T06:31:39.123Z`.
pub(crate) fn moment(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Howard Hinnant's `civil_from_days`, for days since 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so the leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, millis) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("3", 3_000),
            ("0", 0),
            ("0.5", 500),
            ("1.5m", 90_000),
            ("1000000h", 3_600_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "1d", "-1", "1 s", "1.2.3", "1e3", "ms", "inf"] {
            assert!(parse(text).is_err(), "{text}");
        }
        for text in ["1000001h", "9999999999999999999", "1".repeat(400).as_str()] {
            assert!(
                parse(text).is_err_and(|why| why.contains("at most")),
                "{text}"
            );
        }
    }

    #[test]
    fn times_are_written_for_people() {
        for (millis, text) in [
            (0, "0 ms"),
            (350, "350 ms"),
            (12_900, "12 s"),
            (60_000, "1 min"),
            (75_000, "1 min 15 s"),
            (7_260_000, "2 h 1 min"),
        ] {
            assert_eq!(super::text(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (millis, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_795_329_099_123, "2026-11-22T06:31:39.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(moment(UNIX_EPOCH + Duration::from_millis(millis)), shown);
        }
    }
}
