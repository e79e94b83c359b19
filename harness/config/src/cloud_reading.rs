//! Converts the keys of a profile's `cloud` to a cloud source.

use super::cloud_source::{CloudSource, CredentialFrom, Proxying, usual_arguments};
use super::profile_file::{CloudKeys, CredentialKeys, DriverKeys, ProxyKeys, RealKeys};
use super::profile_reading::Reading;
use super::route_file;
use fake_cloud_dialects::NAMES as DIALECTS;
use harness_core::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Reading<'_> {
    pub(super) fn cloud(&mut self, cloud: CloudKeys) -> CloudSource {
        let usual = || CloudSource::Dialect(DIALECTS[0].to_owned());
        let forms = [
            ("dialect", cloud.dialect.is_some()),
            ("driver", cloud.driver.is_some()),
            ("real", cloud.real.is_some()),
        ];
        let source = match self.only_one("cloud", &forms) {
            false => None,
            true => match (cloud.dialect, cloud.driver, cloud.real) {
                (Some(dialect), ..) => Some(CloudSource::Dialect(dialect)),
                (_, Some(driver), _) => self.driver("cloud.driver", driver),
                (.., Some(real)) => self.real(real),
                (None, None, None) => None,
            },
        };
        let source = source.unwrap_or_else(usual);
        match cloud.proxy.and_then(|proxy| self.proxy(proxy)) {
            Some(proxy) => CloudSource::Proxied { behind: Box::new(source), proxy },
            None => source,
        }
    }

    fn proxy(&mut self, proxy: ProxyKeys) -> Option<Proxying> {
        // A missing key was already reported.
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
        if proxy.http_proxy && proxy.tls {
            let why = "has no effect with 'cloud.proxy.tls': HTTP_PROXY is for calls without TLS; keep one";
            self.problem("cloud.proxy.httpProxy", why);
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
        let (tls, http_proxy) = (proxy.tls, proxy.http_proxy);
        Some(Proxying { routes, upstream: proxy.upstream, upstream_ca, tls, http_proxy })
    }

    /// Whether at most one of these is given; otherwise reports a problem.
    fn only_one(&mut self, key: &str, forms: &[(&str, bool)]) -> bool {
        let given: Vec<&str> = forms.iter().filter(|(_, given)| *given).map(|(form, _)| *form).collect();
        if given.len() > 1 {
            self.problem(key, format!("has '{}'; keep one", given.join("' and '")));
        }
        given.len() <= 1
    }

    fn real(&mut self, real: RealKeys) -> Option<CloudSource> {
        let mut credentials = BTreeMap::new();
        for (name, CredentialKeys { env, file }) in real.credentials {
            let key = format!("cloud.real.credentials.{name}");
            if !self.only_one(&key, &[("env", env.is_some()), ("file", file.is_some())]) {
                continue;
            }
            let file = file.map(|file| self.folder().join(file));
            if let Some(file) = file.as_ref().filter(|file| !file.is_file()) {
                self.problem(&format!("{key}.file"), format!("there is no file {}", file.display()));
            }
            match env.map(CredentialFrom::Variable).or(file.map(CredentialFrom::File)) {
                Some(from) => drop(credentials.insert(name, from)),
                None => self.problem(&key, "is empty; write 'env' or 'file'"),
            }
        }
        // A missing key was already reported.
        let driver = Box::new(self.driver("cloud.real.driver", real.driver?)?);
        Some(CloudSource::Real { driver, credentials })
    }

    fn driver(&mut self, at: &str, driver: DriverKeys) -> Option<CloudSource> {
        let DriverKeys { url, token_file, command, image, arguments } = driver;
        let has_arguments = arguments.is_some();
        let forms = [("url", url.is_some()), ("command", command.is_some()), ("image", image.is_some())];
        if !self.only_one(at, &forms) {
            return None;
        }
        let other_than = |of: &str| forms.iter().any(|(form, given)| *given && *form != of);
        for (key, is_given, of) in
            [("tokenFile", token_file.is_some(), "url"), ("arguments", has_arguments, "image")]
        {
            if is_given && other_than(of) {
                self.problem(&format!("{at}.{key}"), format!("has no meaning without '{of}'"));
                return None;
            }
        }
        match (url, command, image) {
            (Some(url), _, _) => self.driver_at(at, url, token_file),
            (_, Some(line), _) if line.first().is_some_and(|program| !program.is_empty()) => {
                let folder = self.folder();
                let folder = if folder == Path::new("") { PathBuf::from(".") } else { folder };
                Some(CloudSource::DriverCommand { line, folder })
            }
            (_, Some(_), _) => {
                self.problem(&format!("{at}.command"), "is empty; write the program and its arguments");
                None
            }
            (_, _, Some(image)) => {
                let arguments = arguments.unwrap_or_else(usual_arguments);
                Some(CloudSource::DriverImage { image, arguments })
            }
            (None, None, None) => {
                self.problem(at, "names no driver; write 'url' with 'tokenFile', 'command', or 'image'");
                None
            }
        }
    }

    fn driver_at(&mut self, at: &str, url: String, token_file: Option<String>) -> Option<CloudSource> {
        let Some(file) = token_file else {
            self.problem(
                &format!("{at}.tokenFile"),
                "is missing; name the file that holds the driver's token",
            );
            return None;
        };
        let token_file = self.folder().join(file);
        if !token_file.is_file() {
            self.problem(&format!("{at}.tokenFile"), format!("there is no file {}", token_file.display()));
        }
        let sound = url.parse::<http::Uri>().is_ok_and(|uri| uri.scheme_str() == Some("http"));
        if !sound {
            self.problem(&format!("{at}.url"), format!("'{url}' is not of the form http://HOST:PORT"));
        }
        Some(CloudSource::DriverAt { url, token_file })
    }
}
