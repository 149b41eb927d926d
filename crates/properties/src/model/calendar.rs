//! The Gregorian calendar, counted day by day and year by year.
//!
//! Slow and plain on purpose: what it judges uses closed formulas.

/// A date and a time of day in UTC, all in the numbers that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

const fn days_of_year(year: i64) -> i64 {
    if is_leap(year) { 366 } else { 365 }
}

impl Moment {
    /// Seconds since 1970-01-01T00:00:00Z; `None` when there is no such date or time of day.
    pub fn seconds(self) -> Option<i64> {
        let is_date = (1..=12).contains(&self.month) && (1..=days_of_month(self.year, self.month)).contains(&self.day);
        let is_time = (0..24).contains(&self.hour) && (0..60).contains(&self.minute) && (0..60).contains(&self.second);
        (is_date && is_time).then(|| self.days() * 86_400 + self.hour * 3600 + self.minute * 60 + self.second)
    }

    fn days(self) -> i64 {
        let mut days = self.day - 1;
        for month in 1..self.month {
            days += days_of_month(self.year, month);
        }
        for year in 1970..self.year {
            days += days_of_year(year);
        }
        for year in self.year..1970 {
            days -= days_of_year(year);
        }
        days
    }

    /// The moment so many seconds after 1970-01-01T00:00:00Z.
    pub fn at(seconds: i64) -> Moment {
        let (mut days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let mut year = 1970;
        while days < 0 {
            year -= 1;
            days += days_of_year(year);
        }
        while days >= days_of_year(year) {
            days -= days_of_year(year);
            year += 1;
        }
        let mut month = 1;
        while days >= days_of_month(year, month) {
            days -= days_of_month(year, month);
            month += 1;
        }
        Moment { year, month, day: days + 1, hour: of_day / 3600, minute: of_day / 60 % 60, second: of_day % 60 }
    }

    /// 0 for a Sunday: 1970-01-01 was a Thursday.
    pub fn weekday(self) -> usize {
        usize::try_from((self.days() + 4).rem_euclid(7)).expect("0 to 6 is a small number")
    }
}

/// So many digits and nothing else, as a number.
pub fn digits(text: &str, count: usize) -> Option<i64> {
    let fits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| text.bytes().fold(0, |number, byte| number * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_finds_known_days() {
        let moment = Moment { year: 1994, month: 11, day: 6, hour: 8, minute: 49, second: 37 };
        assert_eq!((moment.seconds(), moment.weekday()), (Some(784_111_777), 0));
        assert_eq!(Moment::at(784_111_777), moment);
        for seconds in [-62_167_219_200, -1, 0, 951_782_400, 1_773_317_134, 253_402_300_799] {
            assert_eq!(Moment::at(seconds).seconds(), Some(seconds));
        }
        assert_eq!(Moment { year: 1900, month: 2, day: 29, ..moment }.seconds(), None);
        assert!(Moment { year: 2000, month: 2, day: 29, ..moment }.seconds().is_some());
    }
}
