"""Register the teacher types that send nothing."""

from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import (
    HandwrittenTeacherSettings,
    RecordedTeacherSettings,
    SimulatedTeacherSettings,
)
from tracemill.teachers.kind import TeacherContext, TeacherKind


def _simulated(settings: SimulatedTeacherSettings, context: TeacherContext) -> Teacher:
    from tracemill.teachers.offline.simulated_teacher import SimulatedTeacher

    return SimulatedTeacher(settings)


def _recorded(settings: RecordedTeacherSettings, context: TeacherContext) -> Teacher:
    from tracemill.teachers.offline.recorded_teacher import RecordedTeacher

    return RecordedTeacher(settings, context.redact)


def _handwritten(settings: HandwrittenTeacherSettings, context: TeacherContext) -> Teacher:
    from tracemill.teachers.offline.handwritten_teacher import HandwrittenTeacher

    return HandwrittenTeacher(settings, context.redact)


SIMULATED = TeacherKind(SimulatedTeacherSettings, _simulated)
RECORDED = TeacherKind(RecordedTeacherSettings, _recorded)
HANDWRITTEN = TeacherKind(HandwrittenTeacherSettings, _handwritten)
