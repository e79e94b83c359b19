//! From the keys of a profile's `cloud` to what they mean.

use super::cloud_source::{CloudSource, Proxying, usual_arguments};
use super::profile_file::{CloudKeys, DriverKeys, ProxyKeys};
use super::profile_reading::Reading;
use super::route_file;
use crate::files;
use fake_cloud::dialects::NAMES as DIALECTS;
use std::path::{Path, PathBuf};

impl Reading<'_> {
    pub(super) fn cloud(&mut self, cloud: CloudKeys) -> CloudSource {
        let usual = || CloudSource::Dialect(DIALECTS[0].to_owned());
        let source = match (cloud.dialect, cloud.driver) {
            (Some(_), Some(_)) => {
                self.problem("cloud", "has both 'dialect' and 'driver'; keep one");
                usual()
            }
            (Some(dialect), None) => CloudSource::Dialect(dialect),
            (None, Some(driver)) => self.driver(driver).unwrap_or_else(usual),
            (None, None) => usual(),
        };
        match cloud.proxy.and_then(|proxy| self.proxy(proxy)) {
            Some(proxy) => CloudSource::Proxied { behind: Box::new(source), proxy },
            None => source,
        }
    }

    fn proxy(&mut self, proxy: ProxyKeys) -> Option<Proxying> {
        // What is missing was reported already.
        if proxy.routes.is_empty() {
            return None;
        }
        if let Some(url) = &proxy.upstream {
            let uri = url.parse::<http::Uri>().ok();
            let sound = uri.is_some_and(|uri| {
                uri.host().is_some()
                    && matches!(uri.scheme_str(), Some("http" | "https"))
                    && uri.query().is_none()
            });
            if !sound {
                let why = format!("'{url}' is not of the form http://HOST:PORT/PATH or https://..");
                self.problem("cloud.proxy.upstream", why);
            }
        }
        let upstream_ca = proxy.upstream_ca.map(|file| self.folder().join(file));
        if let Some(file) = upstream_ca.as_ref().filter(|file| !file.is_file()) {
            self.problem("cloud.proxy.upstreamCa", format!("there is no file {}", file.display()));
        }
        let file = self.folder().join(proxy.routes);
        if !files::is_file(&file) {
            self.problem("cloud.proxy.routes", format!("there is no file {}", file.display()));
            return None;
        }
        let routes = route_file::read(&file, self.problems)?;
        Some(Proxying { routes, upstream: proxy.upstream, upstream_ca, tls: proxy.tls })
    }

    fn driver(&mut self, driver: DriverKeys) -> Option<CloudSource> {
        let DriverKeys { url, token_file, command, image, arguments } = driver;
        let has_arguments = arguments.is_some();
        let forms = [("url", url.is_some()), ("command", command.is_some()), ("image", image.is_some())];
        let given: Vec<&str> = forms.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
        if given.len() > 1 {
            self.problem("cloud.driver", format!("has '{}'; keep one", given.join("' and '")));
            return None;
        }
        for (key, is_given, of) in
            [("tokenFile", token_file.is_some(), "url"), ("arguments", has_arguments, "image")]
        {
            if is_given && given.iter().any(|form| *form != of) {
                self.problem(&format!("cloud.driver.{key}"), format!("has no meaning without '{of}'"));
                return None;
            }
        }
        match (url, command, image) {
            (Some(url), _, _) => self.driver_at(url, token_file),
            (_, Some(line), _) if line.first().is_some_and(|program| !program.is_empty()) => {
                let folder = self.folder();
                let folder = if folder == Path::new("") { PathBuf::from(".") } else { folder };
                Some(CloudSource::DriverCommand { line, folder })
            }
            (_, Some(_), _) => {
                self.problem("cloud.driver.command", "is empty; write the program and its arguments");
                None
            }
            (_, _, Some(image)) => {
                let arguments = arguments.unwrap_or_else(usual_arguments);
                Some(CloudSource::DriverImage { image, arguments })
            }
            (None, None, None) => {
                self.problem(
                    "cloud.driver",
                    "names no driver; write 'url' with 'tokenFile', 'command', or 'image'",
                );
                None
            }
        }
    }

    fn driver_at(&mut self, url: String, token_file: Option<String>) -> Option<CloudSource> {
        let Some(file) = token_file else {
            self.problem("cloud.driver.tokenFile", "is missing; name the file that holds the driver's token");
            return None;
        };
        let token_file = self.folder().join(file);
        if !token_file.is_file() {
            self.problem("cloud.driver.tokenFile", format!("there is no file {}", token_file.display()));
        }
        let sound = url.parse::<http::Uri>().is_ok_and(|uri| uri.scheme_str() == Some("http"));
        if !sound {
            self.problem("cloud.driver.url", format!("'{url}' is not of the form http://HOST:PORT"));
        }
        Some(CloudSource::DriverAt { url, token_file })
    }
}
